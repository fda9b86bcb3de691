// What 2:4 cost each layer.
#include <algorithm>
#include <charconv>
#include <functional>

#include "retort/report/differences.h"
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
Chart layer_chart(const Json& layers, record::Key key, const char* title) {
  Chart chart{.bars = true, .from_zero = true, .x_title = "block"};
  View view{.name = "", .y_title = title};
  std::vector<std::string> projections;
  for (const Json& layer : elements(layers)) {
    const auto error = number(layer, key);
    if (!error) continue;
    const Place place = place_of(text(layer, keys::kName));
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

/// "0.9036 to 0.9160", empty where the inputs stayed in their order.
std::string kept_shares(const Json& layer) {
  const auto before = number(layer, keys::kKeptShareBefore), after = number(layer, keys::kKeptShareAfter);
  return before && after ? fixed(before, 4) + " to " + fixed(after, 4) : "";
}

/// A column of the table of layers, and what it says of one.
struct LayerColumn {
  Column column;
  record::Key key;  ///< without it in any layer the column is left out
  std::function<std::string(const Json& layer)> cell;
};

std::vector<LayerColumn> layer_columns() {
  const auto digits = [](record::Key key, int count) {
    return [=](const Json& layer) { return significant(number(layer, key), count); };
  };
  const auto places = [](record::Key key, int count) {
    return [=](const Json& layer) { return fixed(number(layer, key), count); };
  };
  return {{{"Rows", ""}, keys::kRows, places(keys::kRows, 0)},
          {{"Columns", ""}, keys::kCols, places(keys::kCols, 0)},
          {{"Dampening", ""}, keys::kDampening, digits(keys::kDampening, 3)},
          {{"Loss", ""}, keys::kLoss, digits(keys::kLoss, 4)},
          {{"Identity residual", ""}, keys::kIdentityResidual, digits(keys::kIdentityResidual, 2)},
          {{"Kept by the pattern", "share of scores, before and after a permutation", true},
           keys::kKeptShareAfter,
           kept_shares},
          {{"Relative error", ""}, keys::kRelativeError, places(keys::kRelativeError, 4)}};
}

Html layer_table(const Json& result) {
  const auto& layers = elements(field(result, keys::kLayers));
  auto columns = layer_columns();
  std::erase_if(columns, [&](const LayerColumn& column) {
    return std::none_of(layers.begin(), layers.end(),
                        [&](const Json& layer) { return number(layer, column.key).has_value(); });
  });
  std::vector<Column> titles = {{"Layer", "", true}};
  for (const auto& column : columns) titles.push_back(column.column);
  Table table("", titles);
  for (const Json& layer : layers) {
    std::vector<Html> cells = {text(layer, keys::kName)};
    for (const auto& column : columns) cells.push_back(column.cell(layer));
    table.row(cells);
  }
  return table.empty() ? Html() : table.html();
}

/// "0.0123 (0.0101 to 0.0150)", with a dash where there were too few documents for an interval.
std::string with_interval(const Json& damage) {
  return fixed(number(damage, keys::kObjective), 4) + " (" + interval_of(damage) + ")";
}

/// "f grew by 0.0123 (0.0101 to 0.0150), log perplexity by 0.0081 and KL by 0.0042, on ..., most on en
/// (0.0200)"
std::string total_damage(const Json& damage) {
  std::string line = "f grew by " + with_interval(damage);
  const auto nll = number(damage, keys::kDeltaLogPerplexity), kl = number(damage, keys::kKl);
  if (!nll || !kl) return line + " on held-out calibration text";  // of an earlier version
  line += ", log perplexity by " + fixed(nll, 4) + " and KL by " + fixed(kl, 4) +
          ", on calibration text that nothing was fitted to or chosen by";
  const std::string worst = text(damage, keys::kWorstDomain);
  if (const auto most = number(entry(field(damage, keys::kDomains), worst)); !worst.empty() && most)
    line += ", most on " + worst + " (" + fixed(most, 4) + ")";
  return line;
}

Html sparsity_totals(const Json& result) {
  const auto zeros = number(result, keys::kZerosFraction);
  const auto layers = elements(field(result, keys::kLayers)).size();
  if (layers == 0) return {};
  std::string line = std::to_string(layers) + " layers";
  if (const std::string pattern = text(result, keys::kPattern); !pattern.empty())
    line += " with pattern " + pattern;
  if (zeros) line += ", " + percent(zeros) + " zeros";
  if (const Json& damage = field(result, keys::kDamage); number(damage, keys::kObjective))
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
  for (const std::string& cell : {with_interval(damage), fixed(number(damage, keys::kDeltaLogPerplexity), 4),
                                  fixed(number(damage, keys::kKl), 4), text(damage, keys::kWorstDomain)})
    of.push_back(cell);
  return of;
}

/// What each layer alone does to f, and what all together do, block after block.
Html damages(const Json& result) {
  const Json& singles = field(result, keys::kSingleDamages);
  Table table("Each layer alone; those with the least damage per weight became sparse.",
              damage_columns({{"Layer", "", true}, {"", "", true}}));
  for (const Json& row : elements(singles)) {
    table.row(
        damage_row({text(row, keys::kName), is_true(row, keys::kSparse) ? "sparse" : "stays dense"}, row));
  }
  if (table.empty()) return {};
  Table together("All together, up to a block", damage_columns({{"Block", ""}}));
  for (const Json& row : elements(field(result, keys::kCumulativeDamages)))
    together.row(damage_row({fixed(number(row, keys::kUpToBlock), 0)}, row));
  return figure(layer_chart(singles, keys::kObjective, "change of f (nats)"),
                "Damage: the change of f from the model as it came when this layer alone is sparse, on the "
                "text that the choice was made by.",
                table.html() + together.html());
}

/// On held-out documents, after training too.
Html changes(const Json& evaluation) {
  Table table(
      "Change of f to the model before sparsity, on held-out documents and against the teacher (95 % "
      "interval "
      "over paired documents). " +
          std::string(kLimitsOfIntervals),
      {{"Model", "", true},
       {"Before", "", true},
       {"f", "nats, 95 % interval", true},
       {"NLL", "nats per token"},
       {"KL", "nats per token"},
       {"Worst domain", "", true}});
  for (const Json& row : elements(field(evaluation, keys::kSparsity)))
    table.row({text(row, keys::kModel), text(row, keys::kBefore), with_interval(row),
               fixed(number(row, keys::kNll), 4), fixed(number(row, keys::kKl), 4),
               text(row, keys::kWorstDomain)});
  return table.empty() ? Html() : table.html();
}

Html layers_and_damages(const Stage& stage) {
  const Chart chart = layer_chart(field(stage.result, keys::kLayers), keys::kRelativeError,
                                  "relative error of the layer (fraction)");
  const Html table = layer_table(stage.result);
  const char* caption =
      "Error that sparsity leaves in each layer, relative to its output on calibration text.";
  return sparsity_totals(stage.result) + (chart.views.empty() ? table : figure(chart, caption, table)) +
         damages(stage.result);
}

}  // namespace

Html sparsity(const Run& run) {
  Html body = each_stage(run, "sparsify", layers_and_damages);
  for (const Stage& stage : run.stages)
    if (measures_models(stage)) body += changes(stage.result);
  return body;
}

}  // namespace retort::report
