#include "retort/architecture/counts.h"
#include "retort/compress/parts.h"
#include "retort/prune/result.h"
#include "retort/record/keys.h"

namespace retort::prune {
namespace {

namespace keys = record::keys;

base::Json to_json(const Move& move) {
  if (!move.part) return {{keys::kAction, "drop_block"}, {keys::kBlock, move.block}};
  return {{keys::kAction, compress::part_of(*move.part).action()}, {keys::kWidth, move.width}};
}

base::Json to_json(const MeasuredMove& measured) {
  auto json = to_json(measured.move);
  json.update({{keys::kObjective, measured.objective},
               {keys::kParametersRemoved, measured.parameters_removed},
               {keys::kScore, measured.score},
               {keys::kExact, measured.exact},
               {keys::kCandidate, measured.candidate}});
  return json;
}

base::Json to_json(const Decision& decision, std::size_t step) {
  base::Json json = {{keys::kStep, step}};
  json.update(to_json(decision.chosen));
  json[keys::kParameters] = decision.parameters;
  if (decision.inactive_channels) json[keys::kInactiveChannels] = *decision.inactive_channels;
  auto& candidates = json[keys::kCandidates] = base::Json::array();
  for (const auto& candidate : decision.candidates) candidates.push_back(to_json(candidate));
  return json;
}

base::Json to_json(const MeasuredCandidate& candidate, const std::vector<std::string>& sources) {
  auto json = calibrate::to_json(candidate.evaluation, sources);
  json[keys::kCandidate] = architecture::stable_hash(candidate.kept);
  return json;
}

base::Json to_json(const Finalist& finalist, const PruneReport& report) {
  const auto config = architecture::config_of(report.input, finalist.candidate.kept);
  auto json = to_json(finalist.candidate, report.sources);
  json.update(eval::to_json(report.speed.cost(config)));
  json.update({{keys::kSearchedObjective, finalist.searched_objective},
               {keys::kBehind, finalist.behind.value},
               {keys::kInterval, eval::to_json(finalist.behind.interval)},
               {keys::kTied, finalist.tied()},
               {keys::kBlocks, config.blocks.size()}});
  return json;
}

base::Json to_json(const SearchCourse& course, const std::vector<std::string>& sources) {
  base::Json json = {{keys::kMethod, base::word(course.method)},
                     {keys::kUnits, base::word(course.units)},
                     {keys::kSearchedObjective, course.finalists.front().searched_objective},
                     {keys::kEvaluations, course.evaluations},
                     {keys::kEvaluationsNotFinite, course.evaluations_not_finite},
                     {keys::kTokensSpent, course.tokens_spent},
                     {keys::kTokensBudget, course.tokens_budget},
                     {keys::kStarts, base::Json::object()},
                     {keys::kCurve, base::Json::array()},
                     {keys::kInactiveChannels, course.inactive_channels}};
  for (const auto& start : course.starts) json[keys::kStarts][start.name] = to_json(start.candidate, sources);
  for (const auto& [spent, objective] : course.curve) json[keys::kCurve].push_back({spent, objective});
  return json;
}

base::Json to_json(const Believed& believed) {
  return {{keys::kCandidate, believed.candidate},
          {keys::kSaved, believed.saved},
          {keys::kBehind, believed.behind.value},
          {keys::kInterval, eval::to_json(believed.behind.interval)}};
}

// The model, before and after.
base::Json model_json(const PruneReport& report) {
  const auto& block = report.input.blocks.front();
  return {{keys::kKind, "prune"},
          {keys::kParametersBefore, architecture::num_parameters(report.input)},
          {keys::kParametersAfter, architecture::num_parameters(report.output)},
          {keys::kBlocksBefore, report.input.blocks.size()},
          {keys::kWidthBefore, architecture::mlp_width(block)},
          {keys::kKvGroupsBefore, architecture::kv_groups(block)},
          {keys::kHiddenBefore, report.input.hidden_size},
          {keys::kKept, architecture::to_json(report.kept)},
          {keys::kSlicedOutputDifference, report.sliced_output_difference},
          {keys::kComparedAfterCompensation, report.compared_after_compensation}};
}

}  // namespace

base::Json to_json(const PruneReport& report) {
  const auto* search = std::get_if<SearchCourse>(&report.course);
  auto json = model_json(report);
  json.update(calibrate::to_json(report.evaluation, report.sources));
  json[keys::kInterval] = eval::to_json(report.interval);
  if (report.objective_uncompensated) {
    json[keys::kObjectiveUncompensated] = *report.objective_uncompensated;
    json[keys::kCompensation] =
        report.compensation ? compress::to_json(*report.compensation) : base::Json(nullptr);
  }
  json[keys::kBelieved] = to_json(report.believed);
  if (const auto* times = report.size.times())
    json[keys::kLatency] = {{keys::kTargetSeconds, report.size.seconds(report.target)},
                            {keys::kSecondsBefore, times->seconds(report.input)},
                            {keys::kSecondsAfter, times->seconds(report.output)},
                            {keys::kTimes, times->to_json()}};
  else
    json[keys::kParametersTarget] = report.target;
  json[keys::kMemoryPlannedBytes] = report.memory_planned_bytes;
  json[keys::kMemoryUnusedBytes] = report.memory_unused_bytes;
  if (search) {
    json.update(to_json(*search, report.sources));
  } else {
    auto& decisions = json[keys::kDecisions] = base::Json::array();
    for (const auto& decision : std::get<std::vector<Decision>>(report.course))
      decisions.push_back(to_json(decision, decisions.size() + 1));
  }
  json[keys::kSpeed] = report.speed.to_json();
  json[keys::kCost] = eval::to_json(report.speed.cost(report.output));
  json[keys::kCostBefore] = eval::to_json(report.speed.cost(report.input));
  if (search)
    for (const auto& finalist : search->finalists)
      json[keys::kFinalists].push_back(to_json(finalist, report));
  json[keys::kSeconds] = report.seconds;
  return json;
}

}  // namespace retort::prune
