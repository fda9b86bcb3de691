#include <algorithm>
#include <map>
#include <set>

#include "retort/report/charts.h"
#include "retort/report/fields.h"
#include "retort/report/sections.h"

namespace retort::report {

using base::Json;

namespace {

/// The model that a select stage took, as the recipe names it.
std::string selected(const Stage& stage) {
  for (const Json& model : elements(field(stage.result, keys::kModels)))
    if (text(model, keys::kName) == text(stage.result, keys::kChosen)) return text(model, keys::kModel);
  return {};
}

/// How a model came about since it was pruned: "tabu", "tabu, distill"; "not pruned" without a prune stage.
std::string method_of(const Run& run, const std::string& model) {
  std::string later;
  std::set<std::string> seen;
  for (const Stage* stage = stage_of(run, model); stage && seen.insert(stage->name).second;) {
    if (stage->kind == "prune") {
      const std::string method = text(field(stage->recipe, keys::kSearch), keys::kMethod);
      return (method.empty() ? "prune" : method) + later;
    }
    later.insert(0, ", " + stage->kind);
    stage = stage_of(run, stage->kind == "select" ? selected(*stage) : text(stage->recipe, keys::kFrom));
  }
  return "not pruned";
}

struct Axis {
  record::Key key;
  const char* name;
  const char* y_title;
};
constexpr Axis kAxes[] = {{keys::kPerplexity, "Perplexity", "perplexity, mean of sources"},
                          {keys::kKl, "KL", "KL to the teacher (nats per token)"},
                          {keys::kNll, "NLL", "NLL (nats per token)"}};

View view_of(const Run& run, const Json& result, const Axis& axis) {
  std::map<std::string, Points> methods;
  for (const Json& model : elements(field(result, keys::kModels)))
    if (const auto parameters = number(model, keys::kParameters),
        value = number(field(model, keys::kMean), axis.key);
        parameters && value)
      methods[method_of(run, text(model, keys::kName))].emplace_back(*parameters, *value);
  View view{.name = axis.name, .y_title = axis.y_title};
  std::size_t color = 0;
  for (auto& [name, points] : methods) {
    std::sort(points.begin(), points.end());
    view.series.push_back({.name = name, .color = color, .dash = color, .marks = true, .points = points});
    ++color;
  }
  return view;
}

/// Two sizes besides the whole model's make a curve.
bool has_curve(const Run& run, const Json& result) {
  std::set<double> sizes;
  for (const Json& model : elements(field(result, keys::kModels)))
    if (const auto parameters = number(model, keys::kParameters);
        parameters && method_of(run, text(model, keys::kName)) != "not pruned")
      sizes.insert(*parameters);
  return sizes.size() > 1;
}

}  // namespace

Html trade_offs(const Run& run) {
  Html body;
  for (const Stage& stage : run.stages) {
    if (!measures_models(stage) || !has_curve(run, stage.result)) continue;
    Chart chart{.abbreviated_x = true, .x_title = "parameters"};
    for (const Axis& axis : kAxes) chart.views.push_back(view_of(run, stage.result, axis));
    body += figure(chart,
                   "Held-out quality of stage " + stage.name +
                       " against size: a line for each method of pruning and what came after it.",
                   {});
  }
  return body;
}

}  // namespace retort::report
