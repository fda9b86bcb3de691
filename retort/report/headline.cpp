// Title, facts, the result in a sentence, and the stages as a strip.
#include <algorithm>

#include "retort/report/fields.h"
#include "retort/report/sections.h"

namespace retort::report {
namespace {

using base::Json;

/// The first of `keys` that the object has a value for.
std::string first_text(const Json& object, const std::vector<std::string>& keys) {
  for (const std::string& key : keys)
    if (std::string value = text(object, key); !value.empty()) return value;
  return {};
}

/// "2026-01-02T03:04:05Z" as "2026-01-02 03:04 UTC"; anything else stays as it is.
std::string readable_time(const std::string& time) {
  if (time.size() != 20 || time[10] != 'T' || time[19] != 'Z') return time;
  return time.substr(0, 10) + " " + time.substr(11, 5) + " UTC";
}

/// The newest start of the run; a file without a list of starts is one start by itself.
const Json& newest_start(const RunFiles& run) {
  const auto& starts = elements(field(run.provenance, "starts"));
  return starts.empty() ? run.provenance : starts.back();
}

Html facts(const RunFiles& run) {
  static const std::vector<std::pair<std::string, std::vector<std::string>>> kFacts = {
      {"Date", {"started", "started_at", "date", "time"}},
      {"Host", {"host", "hostname"}},
      {"Processor", {"processor", "cpu"}},
      {"Device", {"device"}},
      {"Retort", {"retort_version", "retort", "version"}},
      {"torch", {"torch_version", "torch"}},
  };
  Html items;
  for (const auto& [label, keys] : kFacts)
    if (const std::string value = first_text(newest_start(run), keys); !value.empty())
      items += element("div", element("dt", label) + element("dd", readable_time(value)));
  return items.empty() ? Html() : element("dl", {{"class", "facts"}}, items);
}

/// The last model of the last evaluation beside its teacher, as a sentence.
Html abstract(const RunFiles& run) {
  for (auto stage = run.stages.rbegin(); stage != run.stages.rend(); ++stage) {
    if (stage->kind != "evaluate") continue;
    const std::string teacher_name = text(stage->result, "teacher");
    const Json* teacher = nullptr;
    const Json* best = nullptr;
    for (const Json& model : elements(field(stage->result, "models"))) {
      const auto perplexity = number(field(model, "mean"), "perplexity");
      if (text(model, "name") == teacher_name)
        teacher = &model;
      else if (perplexity && (!best || *perplexity < *number(field(*best, "mean"), "perplexity")))
        best = &model;
    }
    const auto size = best ? number(*best, "parameters") : Number();
    const auto teacher_size = teacher ? number(*teacher, "parameters") : Number();
    if (!size || !teacher_size || *teacher_size <= 0) continue;
    return element("p", {{"class", "abstract"}},
                   Html("The best student, ") + element("strong", text(*best, "name")) + ", has " +
                       count(size) + " parameters, " + percent(*size / *teacher_size, 0) +
                       " of its teacher\u2019s " + count(teacher_size) + ", and a held-out perplexity of " +
                       significant(number(field(*best, "mean"), "perplexity")) + " against " +
                       significant(number(field(*teacher, "mean"), "perplexity")) + ".");
  }
  return {};
}

Html origin(const Stage& stage) {
  Html lines;
  if (const std::string from = text(stage.recipe, "from"); !from.empty())
    lines += element("span", {{"class", "from"}}, "from " + from);
  if (const std::string teacher = text(stage.recipe, "teacher"); !teacher.empty())
    lines += element("span", {{"class", "from"}}, "taught by " + teacher);
  return lines;
}

std::string state(const Stage& stage) {
  if (!stage.result.is_null()) return {};
  if (stage.metrics.empty()) return "not started";
  const auto step = number(stage.metrics.back(), "step");
  return step ? "stopped after step " + fixed(step, 0) : "not finished";
}

/// `before` is the stage to the left: an arrow leads from it only when this stage starts from its model.
Html card(const RunFiles& run, const Stage& stage, const Stage* before) {
  Html content = element("span", {{"class", "kind"}}, stage.kind.empty() ? "stage" : stage.kind) +
                 element("strong", stage.name);
  const auto line = [&](const std::string& value) {
    if (!value.empty() && value != kMissing) content += element("span", value);
  };
  if (stage.kind == "evaluate")
    line(stage.result.is_null() ? ""
                                : std::to_string(elements(field(stage.result, "models")).size()) + " models");
  else if (const auto parameters = parameters_of(run, stage))
    line(count(parameters) + " parameters");
  line(seconds(number(stage.result, "seconds")));
  content += origin(stage);
  if (const std::string now = state(stage); !now.empty())
    content += element("span", {{"class", "state"}}, now);
  const bool follows = before != nullptr && text(stage.recipe, "from") == before->name;
  return element(
      "li",
      {{"class", std::string(stage.result.is_null() ? "pending" : "done") + (follows ? " follows" : "")}},
      content);
}

}  // namespace

std::string title_of(const RunFiles& run) {
  std::string name = first_text(run.recipe, {"name"});
  if (name.empty()) name = first_text(run.provenance, {"recipe_name", "recipe"});
  return name.empty() ? run.name : name;
}

Html headline(const RunFiles& run) {
  return element("header", element("p", {{"class", "kicker"}}, "Retort run report") +
                               element("h1", title_of(run)) + facts(run) + abstract(run));
}

Html pipeline(const RunFiles& run) {
  Html cards;
  for (std::size_t i = 0; i < run.stages.size(); ++i)
    cards += card(run, run.stages[i], i == 0 ? nullptr : &run.stages[i - 1]);
  return cards.empty() ? Html() : element("ol", {{"class", "pipeline"}, {"aria-label", "Stages"}}, cards);
}

Number parameters_of(const RunFiles& run, const Stage& stage) {
  for (const char* key : {"parameters_after", "parameters"})
    if (const auto value = number(stage.result, key)) return value;
  for (const Stage& other : run.stages)
    for (const Json& model : elements(field(other.result, "models")))
      if (text(model, "name") == stage.name) return number(model, "parameters");
  return {};
}

}  // namespace retort::report
