// Evaluation tasks: a table of accuracies with what of the teacher's is left, and bars by task.
#include <algorithm>

#include "retort/report/fields.h"
#include "retort/report/sections.h"
#include "retort/report/task_scores.h"

namespace retort::report {
namespace {

using base::Json;

constexpr const char* kCaption =
    "Zero-shot where examples are 0. Recovery is the share of the teacher\u2019s accuracy; above chance, "
    "that "
    "of what its accuracy has above guessing. Intervals are 95 % of a paired bootstrap over documents; p is "
    "McNemar\u2019s exact test of the answers on which the two differ.";

Html task_table(const Json& result) {
  Table table(kCaption, {{"Task", "", true},
                         {"Model", "", true},
                         {"Metric", "", true},
                         {"Examples", ""},
                         {"Score", ""},
                         {"\u00b1", "standard error"},
                         {"Recovery", "95 %"},
                         {"Above chance", "95 %"},
                         {"p", ""}});
  const std::string teacher = text(result, keys::kTeacher);
  for (const Json& model : elements(field(result, keys::kModels)))
    for (const auto& score : task_scores(model)) {
      const auto shots = number(entry(entry(field(model, keys::kTasks), "n-shot"), score.task));
      table.row({score.task, label_of(model),
                 score.filter == "none" ? score.metric : score.metric + ", " + score.filter, fixed(shots, 0),
                 value_of(score), error_of(score), ratio_of(score, "recovery"),
                 ratio_of(score, "recovery_above_chance"), p_value_of(score)},
                text(model, keys::kName) == teacher ? "reference" : "");
    }
  return table.empty() ? Html() : table.html();
}

// Of each task one metric: of several accuracies the last, which is the normalised one.
const TaskScore* shown(const std::vector<TaskScore>& scores, const std::string& task) {
  const auto is_it = [&](const TaskScore& score) { return score.task == task && is_accuracy(score); };
  const auto found = std::find_if(scores.rbegin(), scores.rend(), is_it);
  return found == scores.rend() ? nullptr : &*found;
}

std::vector<std::string> task_names(const Json& result) {
  std::vector<std::string> names;
  for (const Json& model : elements(field(result, keys::kModels)))
    for (const auto& score : task_scores(model))
      if (is_accuracy(score) && std::ranges::find(names, score.task) == names.end())
        names.push_back(score.task);
  return names;
}

Number ratio(const TaskScore& score, std::string_view name) {
  return score.comparison ? number(entry(entry(*score.comparison, name), "value")) : Number();
}

View view_of(const Json& result, const std::vector<std::string>& names, Palette& palette, View view,
             Number (*value)(const TaskScore& score)) {
  for (const Json& model : elements(field(result, keys::kModels))) {
    const auto scores = task_scores(model);
    Series series{.name = label_of(model), .color = palette.color(text(model, keys::kName))};
    bool any = false;
    for (const auto& name : names) {
      const auto* score = shown(scores, name);
      const auto fraction = score ? value(*score) : Number();
      series.values.push_back(fraction ? Number(*fraction * 100) : Number());
      any = any || fraction;
    }
    if (any) view.series.push_back(std::move(series));
  }
  return view;
}

Html task_figure(const Json& result, Palette& palette) {
  const auto names = task_names(result);
  Chart chart{.bars = true, .from_zero = true, .x_title = "task", .labels = names};
  const auto add = [&](View view, Number (*value)(const TaskScore& score)) {
    view = view_of(result, names, palette, std::move(view), value);
    if (!view.series.empty()) chart.views.push_back(std::move(view));
  };
  add({.name = "Accuracy", .y_title = "right answers (%)"},
      [](const TaskScore& score) { return score.value; });
  add({.name = "Recovery", .y_title = "share of the teacher\u2019s accuracy (%)"},
      [](const TaskScore& score) { return ratio(score, "recovery"); });
  add({.name = "Above chance", .y_title = "share of the teacher\u2019s accuracy above guessing (%)"},
      [](const TaskScore& score) { return ratio(score, "recovery_above_chance"); });
  if (chart.views.empty()) return {};
  return figure(chart,
                "Accuracy by task, by its last metric of accuracy: the normalised one where a task has "
                "several.",
                {});
}

}  // namespace

Html tasks(const Run& run, Palette& palette) {
  Html body;
  for (const Stage& stage : run.stages) {
    if (!measures_models(stage)) continue;
    const Html table = task_table(stage.result);
    if (table.empty()) continue;
    if (!body.empty()) body += element("h3", stage.name);
    body += task_figure(stage.result, palette) + table;
  }
  return body;
}

}  // namespace retort::report
