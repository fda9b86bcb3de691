// Stage select: models are distilled for a while with the same text in the same order, the least held-out
// loss wins, and of those that the held-out documents do not tell apart the fastest.
#include <algorithm>
#include <map>
#include <sstream>

#include "retort/architecture/counts.h"
#include "retort/architecture/hf_config.h"
#include "retort/base/error.h"
#include "retort/eval/bootstrap.h"
#include "retort/eval/speed_table.h"
#include "retort/model/weights.h"
#include "retort/pipeline/stages.h"

namespace retort::pipeline {
namespace {

using recipe::Stage;
using Documents = std::vector<std::vector<eval::RatioTerm>>;  // by source: nats and tokens

constexpr double kSameSpeed = 0.03;  // what timing on a busy machine does not tell apart
constexpr std::int64_t kItemBytes = 2;

struct Contender {
  std::string name;
  base::Path path;
  architecture::Config config;
  std::string student;  ///< stage that distils it
  double nll = 0, seconds = 0;
  Documents documents = {};
  double behind = 0;  ///< the one with the least loss, nats per token
  std::optional<eval::Interval> interval = {};
  bool tied = false;
};

std::vector<Contender> contenders_of(const Context& context, const Stage& stage) {
  std::vector<Contender> contenders;
  const auto add = [&](const std::string& name, const base::Path& path) {
    const auto student = base::join(stage.name, ".", contenders.size() + 1);
    contenders.push_back({name, path, architecture::read_config(path), student});
  };
  for (const auto& name : stage.models) {
    add(name, context.model_path(name));
    if (!context.recipe.find_stage(name)) continue;
    for (std::size_t number = 2; std::filesystem::exists(context.finalist_path(name, number)); ++number)
      add(base::join(name, ", finalist ", number), context.finalist_path(name, number));
  }
  return contenders;
}

Stage distillation_of(const Stage& stage, const Contender& contender) {
  Stage copy = stage;
  copy.kind = recipe::StageKind::distill;
  copy.name = contender.student;
  copy.from = contender.path.string();
  copy.models.clear();
  return copy;
}

// Every held-out document on its own, as far as the stage's evaluate_tokens go.
Stage comparison_of(const Context& context, const Stage& stage, const std::vector<Contender>& contenders) {
  const auto& options = std::get<train::TrainOptions>(stage.options);
  Stage comparison = stage;
  comparison.kind = recipe::StageKind::evaluate;
  comparison.name = stage.name + ".scores";
  comparison.models.clear();
  for (const auto& contender : contenders)
    comparison.models.push_back(context.directory.model_directory(contender.student).string());
  comparison.options = eval::EvaluateOptions{.windows = eval::Windowing::rolling,
                                             .context = options.packing.sequence_length,
                                             .tokens = options.evaluate_tokens};
  return comparison;
}

bool distilled(const Context& context, const Stage& stage, const Contender& contender) {
  if (context.directory.finished(contender.student)) return true;
  context.observer.message(record::Level::info,
                           base::join("select: ", contender.student, " distils ", contender.name));
  const auto result = run_train_stage(context, distillation_of(stage, contender));
  if (!result) return false;
  context.directory.write_result(contender.student, *result);
  return true;
}

// Fills in the losses, by document and over all, where every source counts alike.
bool scored(const Context& context, const Stage& stage, std::vector<Contender>& contenders) {
  const auto comparison = comparison_of(context, stage, contenders);
  const auto scores = run_evaluate_stage(context, comparison);
  if (!scores) return false;
  std::map<std::string, std::map<std::string, std::vector<eval::RatioTerm>>> documents;
  std::istringstream lines(base::read_file(context.directory.documents_path(comparison.name)));
  for (std::string line; std::getline(lines, line);) {
    const auto json = base::Json::parse(line);
    documents[json.at("model")][json.at("source")].push_back({json.at("nll"), json.at("tokens")});
  }
  for (std::size_t i = 0; i < contenders.size(); ++i) {
    contenders[i].nll = scores->at("models").at(i).at("mean").at("nll");
    for (auto& [source, terms] : documents.at(comparison.models[i]))
      contenders[i].documents.push_back(std::move(terms));
  }
  return true;
}

// Paired by document: what both models say of the same text.
void compare_with_best(std::vector<Contender>& contenders) {
  const auto& best = *std::min_element(contenders.begin(), contenders.end(),
                                       [](const auto& a, const auto& b) { return a.nll < b.nll; });
  const auto of_best = best.documents;
  const double least = best.nll;
  for (auto& contender : contenders) {
    contender.behind = contender.nll - least;
    auto differences = contender.documents;
    for (std::size_t source = 0; source < differences.size(); ++source)
      for (std::size_t document = 0; document < differences[source].size(); ++document)
        differences[source][document].numerator -= of_best[source][document].numerator;
    contender.interval = eval::bootstrap_interval(differences);
    contender.tied = contender.behind == 0 || (contender.interval && contender.interval->low <= 0);
  }
}

eval::SpeedTable timed(const Context& context, const Stage& stage, std::vector<Contender>& contenders) {
  std::vector<architecture::Config> configs;
  for (const auto& contender : contenders) configs.push_back(contender.config);
  const auto& options = std::get<train::TrainOptions>(stage.options);
  auto table = eval::SpeedTable::measured(
      configs,
      {.context = options.packing.sequence_length, .dtype = context.dtype, .device = context.device});
  for (auto& contender : contenders) contender.seconds = table.seconds(contender.config);
  return table;
}

const Contender& chosen_of(const std::vector<Contender>& contenders) {
  double fastest = std::numeric_limits<double>::infinity();
  for (const auto& contender : contenders)
    if (contender.tied) fastest = std::min(fastest, contender.seconds);
  const Contender* chosen = nullptr;
  for (const auto& contender : contenders)
    if (contender.tied && contender.seconds <= fastest * (1 + kSameSpeed) &&
        (!chosen || contender.nll < chosen->nll))
      chosen = &contender;
  base::ensure(chosen != nullptr, "the best is tied with itself");
  return *chosen;
}

base::Json to_json(const Contender& contender, std::int64_t context_tokens) {
  const auto cost = architecture::cost_of(contender.config, context_tokens, 1, kItemBytes);
  return {{"name", contender.name},
          {"directory", contender.path.string()},
          {"student", contender.student},
          {"parameters", cost.parameters},
          {"active_parameters", cost.active_parameters},
          {"bytes", cost.bytes},
          {"flops_per_token", cost.flops},
          {"seconds", contender.seconds},
          {"nll", contender.nll},
          {"behind", contender.behind},
          {"interval", contender.interval ? base::Json{contender.interval->low, contender.interval->high}
                                          : base::Json(nullptr)},
          {"tied", contender.tied}};
}

void save(const Context& context, const Stage& stage, const Contender& chosen) {
  model::save_model(
      model::load_weights(chosen.path, at::kFloat, context.device),
      context.directory.model_directory(stage.name), chosen.path,
      provenance_of(stage, at::kFloat, base::Json::array({describe_input(chosen.name, chosen.path)})));
}

}  // namespace

std::optional<base::Json> run_select_stage(const Context& context, const Stage& stage) {
  auto contenders = contenders_of(context, stage);
  for (const auto& contender : contenders)
    if (!distilled(context, stage, contender)) return std::nullopt;
  if (!scored(context, stage, contenders)) return std::nullopt;
  compare_with_best(contenders);
  const auto speeds = timed(context, stage, contenders);
  const auto& chosen = chosen_of(contenders);
  save(context, stage, chosen);

  const auto& options = std::get<train::TrainOptions>(stage.options);
  base::Json result = {{"kind", "select"},
                       {"chosen", chosen.name},
                       {"tokens", options.tokens},
                       {"speed", speeds.to_json()},
                       {"models", base::Json::array()}};
  for (const auto& contender : contenders)
    result["models"].push_back(to_json(contender, options.packing.sequence_length));
  context.observer.message(record::Level::info,
                           base::join("select: ", chosen.name, ", held-out loss ", chosen.nll, " after ",
                                      options.tokens, " tokens, of ", contenders.size(), " models"));
  return result;
}

}  // namespace retort::pipeline
