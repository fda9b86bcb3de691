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

base::Json groups_json(const std::vector<GroupLog>& groups) {
  auto collectives = base::Json::array();
  for (const auto& group : groups)
    for (const auto& count : group.counts)
      collectives.push_back(
          {{keys::kGroup, group.name},
           {keys::kRanks, group.ranks},
           {keys::kOperation, base::word(count.op)},
           {keys::kBytes, count.bytes},
           {keys::kCalls, count.calls},
           {keys::kMovedBytes, count.moved_bytes},
           {keys::kRingBytes, count.calls * comm::ring_bytes(count.op, count.bytes, group.ranks)},
           {keys::kSeconds, count.seconds},
           {keys::kExposedSeconds, count.exposed_seconds}});
  return collectives;
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
  if (!result.groups.empty()) {
    json[keys::kCollectives] = groups_json(result.groups);
    json[keys::kCollectivesSteps] = result.logged_steps;
  }
  return json;
}

}  // namespace retort::train
