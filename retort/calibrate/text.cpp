#include "retort/calibrate/text.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <span>

#include "retort/base/error.h"
#include "retort/base/hash.h"
#include "retort/comm/share.h"

namespace retort::calibrate {
namespace {

void check_source(const SourceText& source, std::int64_t vocab_size) {
  const auto inside = [&](std::int32_t id) { return id >= 0 && id < vocab_size; };
  for (const auto& sequence : source.sequences) {
    base::ensure(sequence.ids.size() == sequence.targets.size() && !sequence.ids.empty(),
                 "a calibration sequence is whole");
    base::require<base::DataError>(
        std::all_of(sequence.ids.begin(), sequence.ids.end(), inside), "calibration text '", source.name,
        "': has a token id outside the vocabulary of ", vocab_size, "; use the model's own tokenizer.");
    for (const auto target : sequence.targets) {
      base::require<base::DataError>(target == data::kNoTarget || inside(target), "calibration text '",
                                     source.name, "': has a target outside the vocabulary of ", vocab_size,
                                     "; use the model's own tokenizer.");
    }
  }
  base::require<base::DataError>(data::has_target(source.sequences), "calibration text '", source.name,
                                 data::kNothingToPredict);
}

}  // namespace

Batch make_batch(const architecture::Config& config, const std::vector<SourceText>& sources,
                 const BatchPlace& place, at::Device device) {
  const auto sequences = std::span(sources[place.source].sequences).subspan(place.first, place.count);
  static_assert(data::kNoTarget == -1, "what the losses skip");
  Batch batch{model::packed_text(sequences, device), place.source, {}, {}};
  batch.layout = model::make_token_layout(config, batch.starts, device);
  for (const auto& sequence : sequences)
    for (const auto start : sequence.starts) batch.goes_on.push_back(start == 0 && sequence.goes_on);
  return batch;
}

std::vector<BatchPlace> batch_places(const std::vector<SourceText>& sources, std::int64_t vocab_size,
                                     std::int64_t batch_tokens) {
  base::require<base::DataError>(!sources.empty(),
                                 "calibration: expected at least one source of text, found none; name one.");
  std::vector<BatchPlace> places;
  for (std::size_t source = 0; source < sources.size(); ++source) {
    check_source(sources[source], vocab_size);
    const auto& sequences = sources[source].sequences;
    for (std::size_t begin = 0, end = 0; begin < sequences.size(); begin = end) {
      auto tokens = static_cast<std::int64_t>(sequences[end++].ids.size());
      while (end < sequences.size() &&
             tokens + static_cast<std::int64_t>(sequences[end].ids.size()) <= batch_tokens)
        tokens += static_cast<std::int64_t>(sequences[end++].ids.size());
      places.push_back({source, begin, end - begin, tokens});
    }
  }
  return places;
}

namespace {

std::vector<Batch> made_batches(const std::vector<SourceText>& sources, const architecture::Config& config,
                                at::Device device, std::span<const BatchPlace> places) {
  std::vector<Batch> batches;
  for (const auto& place : places) batches.push_back(make_batch(config, sources, place, device));
  return batches;
}

}  // namespace

std::vector<Batch> calibration_batches(const std::vector<SourceText>& sources,
                                       const architecture::Config& config, at::Device device,
                                       std::int64_t batch_tokens) {
  return made_batches(sources, config, device, batch_places(sources, config.vocab_size, batch_tokens));
}

std::vector<Batch> batches_of_rank(const std::vector<SourceText>& sources, const architecture::Config& config,
                                   at::Device device, int rank, int ranks) {
  const auto places = batch_places(sources, config.vocab_size, kCalibrationBatchTokens);
  const auto own = comm::share_of(places.size(), rank, ranks);
  return made_batches(sources, config, device, std::span(places).subspan(own.first, own.last - own.first));
}

std::int64_t num_tokens(const std::vector<Batch>& batches) {
  std::int64_t tokens = 0;
  for (const auto& batch : batches) tokens += batch.tokens();
  return tokens;
}

std::string text_fingerprint(const std::vector<SourceText>& sources) {
  base::Hasher hasher;
  for (const auto& source : sources)
    for (const auto& sequence : source.sequences) {
      hasher.update(sequence.ids.data(), sequence.ids.size() * sizeof sequence.ids.front());
      hasher.update(sequence.starts.data(), sequence.starts.size() * sizeof sequence.starts.front());
      hasher.update(&sequence.goes_on, sizeof sequence.goes_on);
    }
  return hasher.hex();
}

}  // namespace retort::calibrate
