// Title, facts, the result in a sentence, and the stages as a strip.
#include <algorithm>

#include "retort/base/error.h"
#include "retort/report/fields.h"
#include "retort/report/outcome.h"
#include "retort/report/sections.h"

namespace retort::report {
namespace {

using base::Json;

/// "2026-01-02T03:04:05Z" as "2026-01-02 03:04 UTC"; anything else stays as it is.
std::string readable_time(const std::string& time) {
  if (time.size() != 20 || time[10] != 'T' || time[19] != 'Z') return time;
  return time.substr(0, 10) + " " + time.substr(11, 5) + " UTC";
}

const Json& newest_start(const Run& run) {
  static const Json kNone;
  const auto& starts = elements(field(run.provenance, keys::kStarts));
  return starts.empty() ? kNone : starts.back();
}

Html facts(const Run& run) {
  const Json& start = newest_start(run);
  const std::pair<const char*, std::string> facts[] = {{"Date", readable_time(text(start, keys::kStarted))},
                                                       {"Host", text(start, keys::kHost)},
                                                       {"Processor", text(start, keys::kProcessor)},
                                                       {"Device", text(run.recipe, keys::kDevice)},
                                                       {"Retort", text(start, keys::kRetort)},
                                                       {"torch", text(start, keys::kTorch)}};
  Html items;
  for (const auto& [label, value] : facts)
    if (!value.empty()) items += element("div", element("dt", label) + element("dd", value));
  return items.empty() ? Html() : element("dl", {{"class", "facts"}}, items);
}

Html abstract(const Run& run) {
  const auto [model, sentence] = outcome_of(run);
  if (model.empty()) return {};
  return element("p", {{"class", "abstract"}}, element("strong", model) + sentence);
}

Html origin(const Stage& stage) {
  Html lines;
  if (const std::string from = text(stage.recipe, keys::kFrom); !from.empty())
    lines += element("span", {{"class", "from"}}, "from " + from);
  if (const std::string teacher = text(stage.recipe, keys::kTeacher); !teacher.empty())
    lines += element("span", {{"class", "from"}}, "taught by " + teacher);
  return lines;
}

std::string state(const Stage& stage) {
  if (!stage.result.is_null()) return {};
  if (stage.metrics.empty()) return "not started";
  return base::join("stopped after step ", stage.metrics.back().step);
}

/// `before` is the stage to the left: an arrow leads from it only when this stage starts from its model.
Html card(const Run& run, const Stage& stage, const Stage* before) {
  Html content = element("span", {{"class", "kind"}}, stage.kind.empty() ? "stage" : stage.kind) +
                 element("strong", stage.name);
  const auto line = [&](const std::string& value) {
    if (!value.empty() && value != kMissing) content += element("span", value);
  };
  if (measures_models(stage))
    line(stage.result.is_null()
             ? ""
             : std::to_string(elements(field(stage.result, keys::kModels)).size()) + " models");
  else if (const auto parameters = parameters_of(run, stage))
    line(count(parameters) + " parameters");
  line(seconds(number(stage.result, keys::kSeconds)));
  content += origin(stage);
  if (const std::string now = state(stage); !now.empty())
    content += element("span", {{"class", "state"}}, now);
  const bool follows = before != nullptr && text(stage.recipe, keys::kFrom) == before->name;
  return element(
      "li",
      {{"class", std::string(stage.result.is_null() ? "pending" : "done") + (follows ? " follows" : "")}},
      content);
}

}  // namespace

std::string title_of(const Run& run) {
  return run.name;
}

Html headline(const Run& run) {
  return element("header", element("p", {{"class", "kicker"}}, "Retort run report") +
                               element("h1", title_of(run)) + facts(run) + abstract(run));
}

Html pipeline(const Run& run) {
  Html cards;
  for (std::size_t i = 0; i < run.stages.size(); ++i)
    cards += card(run, run.stages[i], i == 0 ? nullptr : &run.stages[i - 1]);
  return cards.empty() ? Html() : element("ol", {{"class", "pipeline"}, {"aria-label", "Stages"}}, cards);
}

Number parameters_of(const Run& run, const Stage& stage) {
  for (const auto key : {keys::kParametersAfter, keys::kParameters})
    if (const auto value = number(stage.result, key)) return value;
  for (const Stage& other : run.stages)
    for (const Json& model : elements(field(other.result, keys::kModels)))
      if (text(model, keys::kName) == stage.name) return number(model, keys::kParameters);
  return {};
}

}  // namespace retort::report
