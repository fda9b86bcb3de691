// What 2:4 cost each layer.
#include <algorithm>
#include <charconv>

#include "retort/report/fields.h"
#include "retort/report/sections.h"

namespace retort::report {
namespace {

using base::Json;

struct Place {
  std::string block;       ///< decimal index, "" when the name has none
  std::string projection;  ///< what stands behind it, without ".weight"
};

/// "model.layers.3.mlp.up_proj.weight" -> 3, "mlp.up_proj".
Place place_of(const std::string& name) {
  std::string rest = name.ends_with(".weight") ? name.substr(0, name.size() - 7) : name;
  const std::size_t mark = rest.find("layers.");
  if (mark == std::string::npos) return {"", rest};
  const std::size_t start = mark + 7, end = rest.find('.', start);
  if (end == std::string::npos || end == start || end - start > 6) return {"", rest};
  const std::string block = rest.substr(start, end - start);
  if (!std::all_of(block.begin(), block.end(), [](char c) { return c >= '0' && c <= '9'; }))
    return {"", rest};
  return {block, rest.substr(end + 1)};
}

std::size_t position(std::vector<std::string>& names, const std::string& name) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) names.push_back(name);
  return static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin());
}

/// Blocks on the x axis, one series per projection; layers of other names stand each for itself.
Chart layer_chart(const Json& layers, const char* key, const char* title) {
  Chart chart{.bars = true, .from_zero = true, .x_title = "block"};
  View view{.name = "", .y_title = title};
  std::vector<std::string> projections;
  for (const Json& layer : elements(layers)) {
    const auto error = number(layer, key);
    if (!error) continue;
    const Place place = place_of(text(layer, "name"));
    const bool named = !place.block.empty();
    const std::size_t label = position(chart.labels, named ? place.block : place.projection);
    const std::size_t series = position(projections, named ? place.projection : "other layers");
    if (series == view.series.size()) view.series.push_back({.name = projections[series], .color = series});
    auto& values = view.series[series].values;
    values.resize(std::max(values.size(), label + 1));
    values[label] = error;
  }
  for (Series& series : view.series) series.values.resize(chart.labels.size());
  if (!view.series.empty()) chart.views.push_back(std::move(view));
  return chart;
}

Html layer_table(const Json& result) {
  Table table("", {{"Layer", "", true},
                   {"Rows", ""},
                   {"Columns", ""},
                   {"Dampening", ""},
                   {"Loss", ""},
                   {"Identity residual", ""},
                   {"Relative error", ""}});
  for (const Json& layer : elements(field(result, "layers")))
    table.row({text(layer, "name"), fixed(number(layer, "rows"), 0), fixed(number(layer, "cols"), 0),
               significant(number(layer, "dampening")), significant(number(layer, "loss"), 4),
               significant(number(layer, "identity_residual"), 2),
               fixed(number(layer, "relative_error"), 4)});
  return table.empty() ? Html() : table.html();
}

/// "0.0123 (0.0101 to 0.0150)", with a dash where there were too few documents for an interval.
std::string with_interval(const Json& damage) {
  return fixed(number(damage, "objective"), 4) + " (" + interval_of(damage) + ")";
}

/// "f grew by 0.0123 (0.0101 to 0.0150), log perplexity by 0.0081 and KL by 0.0042, on ..., most on en
/// (0.0200)"
std::string total_damage(const Json& damage) {
  std::string line = "f grew by " + with_interval(damage);
  const auto nll = number(damage, "delta_log_perplexity"), kl = number(damage, "kl");
  if (!nll || !kl) return line + " on held-out calibration text";  // of an earlier version
  line += ", log perplexity by " + fixed(nll, 4) + " and KL by " + fixed(kl, 4) +
          ", on calibration text that nothing was fitted to or chosen by";
  const std::string worst = text(damage, "worst_domain");
  if (const auto most = number(field(damage, "domains"), worst); !worst.empty() && most)
    line += ", most on " + worst + " (" + fixed(most, 4) + ")";
  return line;
}

Html totals(const Json& result) {
  const auto zeros = number(result, "zeros_fraction");
  const auto layers = elements(field(result, "layers")).size();
  if (layers == 0) return {};
  std::string line = std::to_string(layers) + " layers";
  if (const std::string pattern = text(result, "pattern"); !pattern.empty())
    line += " with pattern " + pattern;
  if (zeros) line += ", " + percent(zeros) + " zeros";
  if (const Json& damage = field(result, "damage"); number(damage, "objective"))
    line += "; " + total_damage(damage);
  return element("p", line + ".");
}

/// Columns of a damage, after those of what it is of.
std::vector<Column> damage_columns(std::vector<Column> of) {
  for (const Column& column :
       {Column{"Damage", "f in nats, 95 % interval", true}, Column{"\u0394 log perplexity", "nats"},
        Column{"KL", "nats per token"}, Column{"Worst domain", "", true}})
    of.push_back(column);
  return of;
}

std::vector<Html> damage_row(std::vector<Html> of, const Json& damage) {
  for (const std::string& cell : {with_interval(damage), fixed(number(damage, "delta_log_perplexity"), 4),
                                  fixed(number(damage, "kl"), 4), text(damage, "worst_domain")})
    of.push_back(cell);
  return of;
}

/// What each layer alone does to f, and what all together do, block after block.
Html damages(const Json& result) {
  const Json& singles = field(result, "single_damages");
  Table table("Each layer alone; those with the least damage per weight became sparse.",
              damage_columns({{"Layer", "", true}, {"", "", true}}));
  for (const Json& row : elements(singles)) {
    const Json& sparse = field(row, "sparse");
    table.row(damage_row(
        {text(row, "name"), sparse.is_boolean() && sparse.get<bool>() ? "sparse" : "stays dense"}, row));
  }
  if (table.empty()) return {};
  Table together("All together, up to a block", damage_columns({{"Block", ""}}));
  for (const Json& row : elements(field(result, "cumulative_damages")))
    together.row(damage_row({fixed(number(row, "up_to_block"), 0)}, row));
  return figure(layer_chart(singles, "objective", "change of f (nats)"),
                "Damage: the change of f from the model as it came when this layer alone is sparse, on the "
                "text that the choice was made by.",
                table.html() + together.html());
}

/// On held-out documents, after training too.
Html changes(const Json& evaluation) {
  Table table(
      "Change of f to the model before sparsity, on held-out documents and against the teacher (95 % "
      "interval "
      "over paired documents).",
      {{"Model", "", true},
       {"Before", "", true},
       {"f", "nats, 95 % interval", true},
       {"NLL", "nats per token"},
       {"KL", "nats per token"},
       {"Worst domain", "", true}});
  for (const Json& row : elements(field(evaluation, "sparsity")))
    table.row({text(row, "model"), text(row, "before"), with_interval(row), fixed(number(row, "nll"), 4),
               fixed(number(row, "kl"), 4), text(row, "worst_domain")});
  return table.empty() ? Html() : table.html();
}

}  // namespace

Html sparsity(const RunFiles& run) {
  Html body;
  const auto stages = std::count_if(run.stages.begin(), run.stages.end(),
                                    [](const Stage& stage) { return stage.kind == "sparsify"; });
  for (const Stage& stage : run.stages) {
    if (stage.kind != "sparsify" || !stage.result.is_object()) continue;
    if (stages > 1) body += element("h3", stage.name);
    body += totals(stage.result);
    const Chart chart = layer_chart(field(stage.result, "layers"), "relative_error",
                                    "relative error of the layer (fraction)");
    const Html table = layer_table(stage.result);
    if (!chart.views.empty())
      body += figure(chart,
                     "Error that sparsity leaves in each layer, relative to its output on calibration text.",
                     table);
    else
      body += table;
    body += damages(stage.result);
  }
  for (const Stage& stage : run.stages)
    if (stage.kind == "evaluate") body += changes(stage.result);
  return body;
}

}  // namespace retort::report
