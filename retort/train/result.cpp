#include "retort/train/result.h"

#include <algorithm>

#include "retort/record/keys.h"

namespace retort::train {
namespace {

namespace keys = record::keys;

base::Json items_json(const shard::MemoryPlan& plan) {
  auto items = base::Json::array();
  for (const auto& item : plan.items) items.push_back({{keys::kWhat, item.what}, {keys::kBytes, item.bytes}});
  return items;
}

// With what is read of the counts first.
base::Json written_json(const WrittenCounts& counts) {
  auto json = to_json(counts);
  const double texts = std::max(1.0, static_cast<double>(counts.texts));
  json[keys::kMeanTokens] = static_cast<double>(counts.tokens) / texts;
  json[keys::kEndedShare] = static_cast<double>(counts.ended) / texts;
  json[keys::kRepeatingShare] = static_cast<double>(counts.repeating) / texts;
  return json;
}

}  // namespace

base::Json to_json(const TrainResult& result) {
  const double rate = static_cast<double>(result.tokens) / std::max(1e-9, result.seconds);
  base::Json json = {{keys::kSteps, result.steps},
                     {keys::kTokens, result.tokens},
                     {keys::kSeconds, result.seconds},
                     {keys::kTokensPerSecond, rate},
                     {keys::kMatrixProductFlops, result.matrix_product_flops},
                     {keys::kFlopsPerToken, result.flops_per_token},
                     {keys::kPhaseFlopsPerToken, record::to_json(result.phase_flops_per_token)},
                     {keys::kOperationFlopsPerToken, record::to_json(result.operation_flops_per_token)},
                     {keys::kFinal, record::to_json(result.final)},
                     {keys::kMemoryPlannedBytes, result.plan.total_bytes()},
                     {keys::kMemoryPlan, items_json(result.plan)},
                     {keys::kPeakTensorBytes, result.peak_tensor_bytes},
                     {keys::kProcessPeakBytes, result.process_peak_bytes},
                     {keys::kKeepActivations, result.keep_activations}};
  if (result.written) json[keys::kWritten] = written_json(*result.written);
  return json;
}

}  // namespace retort::train
