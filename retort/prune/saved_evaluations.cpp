#include "retort/prune/saved_evaluations.h"

#include "retort/record/keys.h"
#include "retort/record/stopped.h"

namespace retort::prune {
namespace {

namespace keys = record::keys;

base::Json to_json(const calibrate::LossIncrease& increase) {
  return {increase.objective, increase.delta_log_perplexity, increase.kl, increase.kl_gap};
}

calibrate::LossIncrease increase_from_json(const base::Json& json) {
  return {number_or_infinity(json.at(0)), number_or_infinity(json.at(1)), number_or_infinity(json.at(2)),
          number_or_infinity(json.at(3))};
}

base::Json to_json(const calibrate::Evaluation& evaluation) {
  base::Json json = {{keys::kMean, to_json(evaluation.mean)}, {keys::kWorstDomain, evaluation.worst_source}};
  for (const auto& source : evaluation.sources) json[keys::kDomains].push_back(to_json(source));
  return json;
}

calibrate::Evaluation evaluation_from_json(const base::Json& json) {
  calibrate::Evaluation evaluation{.mean = increase_from_json(json.at(keys::kMean)),
                                   .sources = {},
                                   .worst_source = json.at(keys::kWorstDomain).get<std::size_t>()};
  for (const auto& source : json.at(keys::kDomains)) evaluation.sources.push_back(increase_from_json(source));
  return evaluation;
}

}  // namespace

SavedEvaluations::SavedEvaluations(const PruneSetup& setup, const ResolvedPlan& plan,
                                   const Evaluator& evaluator, SharedEvaluator& shared)
    : observer_(setup.observer),
      evaluator_(shared),
      file_(setup.place.saved_file,
            objective_identity(setup.input, evaluator, plan.text, setup.options.objective).dump(),
            observer_) {
  const auto sources = plan.text.choosing.size();
  for (const auto& line : file_.earlier()) try {
      auto evaluation = evaluation_from_json(line);
      if (evaluation.sources.size() == sources && evaluation.worst_source < sources)
        known_[{line.at(keys::kCandidate).get<std::string>(), line.at(keys::kExact).get<bool>()}] =
            std::move(evaluation);
    } catch (const nlohmann::json::exception&) {  // of an earlier version, or damaged: it is measured anew
    }
}

calibrate::Evaluation SavedEvaluations::evaluate(const architecture::Kept& candidate, KlOver over) {
  const std::pair key(architecture::stable_hash(candidate), over == KlOver::vocabulary);
  if (const auto found = known_.find(key); found != known_.end()) return found->second;
  record::stop_if_asked(observer_, "prune", "the candidates measured so far");
  const auto evaluation = evaluator_.evaluate(candidate, over);
  auto line = to_json(evaluation);
  line[keys::kCandidate] = key.first;
  line[keys::kExact] = key.second;
  file_.append(line);
  return known_[key] = evaluation;
}

}  // namespace retort::prune
