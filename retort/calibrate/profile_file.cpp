#include "retort/calibrate/profile_file.h"

#include <ATen/ATen.h>

#include <cstdio>
#include <vector>

#include "retort/base/error.h"
#include "retort/base/hash.h"
#include "retort/base/json_file.h"
#include "retort/base/words.h"
#include "retort/calibrate/histogram.h"
#include "retort/io/files_inside.h"
#include "retort/io/quote.h"
#include "retort/io/safetensors.h"
#include "retort/model/forward.h"
#include "retort/model/tensor_file.h"

namespace retort::calibrate {
namespace {

constexpr int kFormat = 1;
constexpr auto kTapNames =
    base::words<model::Tap::down_input>("qkv_input", "output_input", "gate_up_input", "down_input");

at::Tensor read(const io::SafetensorsFile& file, const std::string& name, at::IntArrayRef shape) {
  auto values = model::read_tensor(file, name);
  base::require<base::ModelError>(values.sizes() == shape, file.path().string(), ": expected a tensor ", name,
                                  " of the profile's shape; the file is damaged, run the stage again.");
  return values;
}

// The vectors of a layer's inputs, by their names in the file.
struct NamedVector {
  const char* name;
  at::Tensor InputStatistics::*values;
};
constexpr std::array<NamedVector, 6> kVectors = {{{"absolute", &InputStatistics::absolute_I},
                                                  {"sum", &InputStatistics::sum_I},
                                                  {"squares", &InputStatistics::squares_I},
                                                  {"maximum", &InputStatistics::maximum_I},
                                                  {"sequence_squares", &InputStatistics::sequence_squares_I},
                                                  {"scale", &InputStatistics::scale_I}}};

InputStatistics read_tap(const io::SafetensorsFile& file, const std::string& tap, bool with_products) {
  const auto counted = at::empty({2}, at::kLong);
  model::read_tensor(file, tap + ".counted", counted);
  const auto* numbers = counted.const_data_ptr<std::int64_t>();
  InputStatistics statistics;
  statistics.tokens = numbers[0];
  const auto first = file.tensors().find(tap + ".absolute");
  base::require<base::ModelError>(first != file.tensors().end() && first->second.shape.size() == 1,
                                  file.path().string(), ": expected a vector ", tap, ".absolute.");
  const auto features = first->second.shape.front();
  for (const auto& [vector, values] : kVectors)
    statistics.*values = read(file, tap + "." + vector, {features});
  statistics.counts_IB = read(file, tap + ".histogram", {features, kBuckets});
  if (!with_products) return statistics;
  statistics.with_products = true;
  statistics.hessian = {read(file, tap + ".products", {features, features}), numbers[1]};
  return statistics;
}

}  // namespace

const char* name(model::Tap tap) {
  return kTapNames[static_cast<std::size_t>(tap)].data();
}

std::string profile_file_name(std::int64_t block) {
  char text[64];
  std::snprintf(text, sizeof text, "block-%05lld.safetensors", static_cast<long long>(block));
  return text;
}

void write_block_profile(const base::Path& path, const BlockStatistics& statistics) {
  std::vector<io::TensorToWrite> tensors;
  for (const auto tap : kTaps) {
    const auto& of = statistics[tap];
    if (of.tokens == 0) continue;
    const auto prefix = std::string(name(tap)) + ".";
    tensors.push_back(
        model::to_write(prefix + "counted", at::tensor({of.tokens, of.hessian.sequences}, at::kLong)));
    for (const auto& [vector, values] : kVectors)
      tensors.push_back(model::to_write(prefix + vector, of.*values));
    tensors.push_back(model::to_write(prefix + "histogram", of.counts_IB));
    tensors.push_back(model::to_write(prefix + "products", of.hessian.products_CC));
  }
  io::write_safetensors(path, tensors);
}

BlockStatistics read_block_profile(const base::Path& path, const RankingOptions& options) {
  const auto file = io::SafetensorsFile::open(path);
  BlockStatistics statistics;
  for (const auto tap : kTaps)
    if (const std::string prefix = name(tap); file.tensors().contains(prefix + ".counted"))
      statistics[tap] = read_tap(file, prefix, options.at(tap) == ChannelRanking::obs);
  return statistics;
}

base::Json read_profile_description(const base::Path& directory) {
  const auto path = directory / kProfileDescription;
  std::error_code ignored;
  base::require<base::UsageError>(std::filesystem::is_regular_file(path, ignored), directory.string(),
                                  ": holds no complete profile; run its stage first.");
  try {
    auto description = base::read_own_json(path);
    base::require<base::ModelError>(description.at("format") == kFormat, path.string(), ": format ",
                                    description.at("format").dump(), ", expected ", kFormat, ".");
    for (const auto& [file, hash] : description.at("files").items()) {
      base::require<base::ModelError>(io::is_basename(file), path.string(), ": names the file ",
                                      io::quote(file),
                                      ", expected one of its own directory; run the stage again.");
      base::require<base::ModelError>(base::hash_file(directory / file) == hash.get<std::string>(),
                                      (directory / file).string(),
                                      ": the checksum does not fit, the profile is damaged; run it again.");
    }
    return description;
  } catch (const base::JsonFault& fault) {
    throw base::ModelError(
        base::join(path.string(), ": not JSON at byte ", fault.byte, ": ", fault.reason, "."));
  } catch (const nlohmann::json::exception& error) {
    throw base::ModelError(
        base::join(path.string(), ": not the description of a profile (", error.what(), ")."));
  }
}

std::vector<BlockScores> profile_scores(const base::Path& directory, const model::Weights& weights,
                                        const RankingOptions& options) {
  base::require<base::UsageError>(!options.uses(ChannelRanking::taylor),
                                  "prune: ranking by taylor needs gradients, which a profile does not hold; "
                                  "leave profile out or choose another ranking.");
  std::vector<BlockScores> scores;
  for (std::int64_t block = 0; block < std::ssize(weights.config.blocks); ++block) {
    auto views = model::weights_of_block(weights, block);
    for (auto* weight : {&views.qkv_XD, &views.output_DY, &views.gate_up_2ID, &views.down_DI})
      if (weight->defined()) *weight = weight->to(at::kCPU);
    const auto statistics = read_block_profile(directory / profile_file_name(block), options);
    for (const auto tap : kTaps) {
      const auto weight = reader_of(views, tap);
      const auto& part = statistics[tap];
      const bool fits =
          weight.defined() ? part.tokens > 0 && part.absolute_I.numel() == weight.size(1) : part.tokens == 0;
      base::require<base::UsageError>(fits, directory.string(), ": block ", block,
                                      " of the profiled model has another shape; profile this model.");
    }
    scores.push_back(block_scores(options, views, statistics));
  }
  return scores;
}

}  // namespace retort::calibrate
