#include "retort/pipeline/calibration_text.h"

#include <algorithm>

#include "retort/base/error.h"
#include "retort/base/hash.h"
#include "retort/data/windows.h"

namespace retort::pipeline {
namespace {

void require_enough(const recipe::Stage& stage, const prune::CalibrationDomain& domain, std::int64_t wanted) {
  std::int64_t found = 0;
  for (const auto& sequence : domain.sequences) found += std::ssize(sequence.ids);
  base::require<base::DataError>(found >= wanted, "stage '", stage.name, "': source '", domain.name,
                                 "' has only ", found, " tokens of calibration text, expected ", wanted,
                                 "; add text or lower calibration_tokens.");
}

}  // namespace

std::vector<prune::CalibrationDomain> calibration_text(const Context& context, const recipe::Stage& stage,
                                                       const ModelText& text, std::int64_t tokens,
                                                       std::int64_t sequence_length, std::uint64_t seed) {
  std::vector<prune::CalibrationDomain> domains;
  const auto sources = context.sources(stage);
  const auto wanted = tokens / static_cast<std::int64_t>(sources.size());
  const auto count = std::max<std::int64_t>(1, (wanted + sequence_length - 1) / sequence_length);
  const data::PackingOptions packing{.sequence_length = sequence_length, .bos = text.special.bos >= 0};
  for (const auto& source : sources)
    domains.push_back({source.name, data::calibration_sequences(source, packing, text.encode(), text.special,
                                                                seed, count)});
  for (const auto& domain : domains) require_enough(stage, domain, wanted);
  return domains;
}

std::string text_fingerprint(const std::vector<prune::CalibrationDomain>& domains) {
  base::Hasher hasher;
  for (const auto& domain : domains)
    for (const auto& sequence : domain.sequences) {
      hasher.update(sequence.ids.data(), sequence.ids.size() * sizeof sequence.ids.front());
      hasher.update(sequence.starts.data(), sequence.starts.size() * sizeof sequence.starts.front());
      hasher.update(&sequence.goes_on, sizeof sequence.goes_on);
    }
  return hasher.hex();
}

base::Json model_fingerprint(const base::Path& model) {
  auto files = describe_input("", model).at("xxh128");
  files["config.json"] = base::hash_file(model / "config.json");
  return files;
}

}  // namespace retort::pipeline
