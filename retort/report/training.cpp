// Curves of the training stages.
#include <algorithm>
#include <cmath>
#include <map>

#include "retort/base/error.h"
#include "retort/report/fields.h"
#include "retort/report/sections.h"

namespace retort::report {
namespace {

using base::Json;

constexpr std::size_t kMaxPoints = 600;    // of a curve: more than the pixels of a line need
constexpr std::size_t kMaxTableRows = 40;  // of the numbers beneath a figure

std::vector<const Stage*> training_stages(const Run& run) {
  std::vector<const Stage*> stages;
  for (const Stage& stage : run.stages)
    if (is_training(stage)) stages.push_back(&stage);
  return stages;
}

using record::MetricsLine;

Number finite(double value) {
  return std::isfinite(value) ? Number(value) : Number();
}

Number named(const record::NamedNumbers& values, const std::string& name) {
  for (const auto& [other, value] : values)
    if (other == name) return finite(value);
  return {};
}

/// Of one source, or with an empty name the mean over all of them.
Number held_out_of(const record::NamedNumbers& values, const std::string& source) {
  if (!source.empty()) return named(values, source);
  if (values.empty()) return {};
  double sum = 0;
  for (const auto& [name, value] : values) sum += value;
  return finite(sum / static_cast<double>(values.size()));
}

/// The step that the result of a finished stage ends with.
MetricsLine last_line(const Stage& stage) {
  return record::metrics_line(field(stage.result, keys::kFinal));
}

enum class Against { tokens, steps };

Points held_out_points(const Stage& stage, const std::string& source, Against against = Against::tokens) {
  Points points;
  const auto add = [&](const MetricsLine& line) {
    const auto x = static_cast<double>(against == Against::tokens ? line.tokens : line.step);
    const auto value = held_out_of(line.held_out, source);
    if (value && (points.empty() || points.back().first < x)) points.emplace_back(x, *value);
  };
  for (const MetricsLine& line : stage.metrics) add(line);
  add(last_line(stage));
  return points;
}

void add_new(std::vector<std::string>& names, const std::string& name) {
  if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
}

std::vector<std::string> held_out_sources(const std::vector<const Stage*>& stages) {
  std::vector<std::string> names;
  for (const Stage* stage : stages) {
    for (const MetricsLine& line : stage->metrics)
      for (const auto& [name, value] : line.held_out) add_new(names, name);
    for (const auto& [name, value] : last_line(*stage).held_out) add_new(names, name);
  }
  return names;
}

Html held_out_table(const std::vector<const Stage*>& stages, const std::vector<std::string>& sources) {
  Table table("", {{"Stage", "", true},
                   {"Source", "", true},
                   {"Tokens", ""},
                   {"First", "nats per token"},
                   {"Lowest", "nats per token"},
                   {"Last", "nats per token"}});
  for (const Stage* stage : stages)
    for (const std::string& source : sources) {
      const Points points = held_out_points(*stage, source);
      if (points.empty()) continue;
      const auto lowest = std::min_element(points.begin(), points.end(),
                                           [](const auto& a, const auto& b) { return a.second < b.second; });
      table.row({stage->name, source, count(points.back().first), fixed(points.front().second, 4),
                 fixed(lowest->second, 4), fixed(points.back().second, 4)});
    }
  return table.empty() ? Html() : table.html();
}

/// Tokens of a step; empty while the stage has no step.
Number batch_tokens(const Stage& stage) {
  const Points tokens = held_out_points(stage, ""), steps = held_out_points(stage, "", Against::steps);
  if (tokens.empty() || steps.empty() || steps.back().first <= 0) return {};
  return tokens.back().first / steps.back().first;
}

bool batches_differ(const std::vector<const Stage*>& stages) {
  Number first;
  for (const Stage* stage : stages) {
    const auto batch = batch_tokens(*stage);
    if (!first) first = batch;
    if (batch && std::abs(*batch - *first) > 0.01 * *first) return true;
  }
  return false;
}

Chart held_out_chart(const std::vector<const Stage*>& stages, const std::vector<std::string>& sources,
                     Against against, Palette& palette) {
  std::vector<std::string> choices = {""};
  if (sources.size() > 1) choices.insert(choices.end(), sources.begin(), sources.end());
  Chart chart{.abbreviated_x = against == Against::tokens,
              .x_title = against == Against::tokens ? "tokens of the stage" : "steps of the stage"};
  for (const std::string& source : choices) {
    View view{.name = source.empty() ? "Mean of sources" : source,
              .y_title = "held-out NLL (nats per token)"};
    for (const Stage* stage : stages) {
      const std::size_t color = palette.color(stage->name);
      if (Points points = held_out_points(*stage, source, against); !points.empty())
        view.series.push_back(
            {.name = stage->name, .color = color, .dash = color, .marks = true, .points = std::move(points)});
    }
    if (!view.series.empty()) chart.views.push_back(std::move(view));
  }
  return chart;
}

/// Against tokens; beside it against steps where stages have batches of different size.
Html held_out_figure(const std::string& start, const std::vector<const Stage*>& stages, Palette& palette) {
  const std::vector<std::string> sources = held_out_sources(stages);
  Chart tokens = held_out_chart(stages, sources, Against::tokens, palette);
  if (tokens.views.empty()) return {};
  const std::string caption = "Held-out loss of training from " + start + ".";
  if (!batches_differ(stages)) return figure(tokens, caption, held_out_table(stages, sources));
  Chart steps = held_out_chart(stages, sources, Against::steps, palette);
  tokens.wide = steps.wide = false;
  return element(
      "div", {{"class", "figures"}},
      figure(tokens, caption + " Against tokens: what it costs.", held_out_table(stages, sources)) +
          figure(steps, "The same against steps: a larger batch takes fewer for the same tokens.", {}));
}

/// Students of a select stage are in no recipe: they are named after it, with a number.
std::string start_of(const Stage& stage) {
  const std::string from = text(stage.recipe, keys::kFrom);
  if (!from.empty()) return from;
  if (stage.recipe.is_object()) return "random weights";
  return "the models of " + stage.name.substr(0, stage.name.rfind('.'));
}

/// A figure for each model that stages start from: on one scale a model that learns new text hides what its
/// students learn.
Html held_out_figures(const std::vector<const Stage*>& stages, Palette& palette) {
  std::vector<std::string> starts;
  std::map<std::string, std::vector<const Stage*>> groups;
  for (const Stage* stage : stages) {
    const std::string start = start_of(*stage);
    if (groups[start].empty()) starts.push_back(start);
    groups[start].push_back(stage);
  }
  Html figures;
  for (const std::string& start : starts) figures += held_out_figure(start, groups[start], palette);
  return figures;
}

Html summary_table(const Run& run, const std::vector<const Stage*>& stages) {
  Table table("Training stages.", {{"Stage", "", true},
                                   {"Kind", "", true},
                                   {"Parameters", ""},
                                   {"Steps", ""},
                                   {"Tokens", ""},
                                   {"Time", ""},
                                   {"Speed", "tokens/s"},
                                   {"Last loss", ""},
                                   {"Held-out NLL", "nats per token"}});
  for (const Stage* stage : stages) {
    const MetricsLine last = stage->metrics.empty() ? last_line(*stage) : stage->metrics.back();
    const auto speed = number(stage->result, keys::kTokensPerSecond);
    const Points held_out = held_out_points(*stage, "");
    table.row({stage->name, stage->kind, count(parameters_of(run, *stage)), std::to_string(last.step),
               count(static_cast<double>(last.tokens)), seconds(number(stage->result, keys::kSeconds)),
               significant(speed ? speed : last.tokens_per_second), fixed(last.loss, 4),
               fixed(held_out.empty() ? Number() : Number(held_out.back().second), 4)});
  }
  return table.html();
}

/// Of the stages whose students wrote texts of their own.
Html written_table(const std::vector<const Stage*>& stages) {
  Table table("Texts that students wrote and learned from.", {{"Stage", "", true},
                                                              {"Texts", ""},
                                                              {"New tokens", ""},
                                                              {"Mean length", "tokens"},
                                                              {"Ended by themselves", ""},
                                                              {"Repeat themselves", ""},
                                                              {"Time of writing", "of the stage"}});
  for (const Stage* stage : stages) {
    const auto& written = field(stage->result, keys::kWritten);
    if (!written.is_object()) continue;
    const auto writing = number(written, keys::kSeconds), all = number(stage->result, keys::kSeconds);
    table.row({stage->name, count(number(written, keys::kTexts)), count(number(written, keys::kTokens)),
               significant(number(written, keys::kMeanTokens)), percent(number(written, keys::kEndedShare)),
               percent(number(written, keys::kRepeatingShare)),
               percent(writing && all && *all > 0 ? Number(*writing / *all) : Number())});
  }
  return table.empty() ? Html() : table.html();
}

/// The loss, and after it whatever the lines call a part of it.
std::vector<std::string> parts_of(const Stage& stage, record::NamedNumbers MetricsLine::*of) {
  std::vector<std::string> parts;
  for (const MetricsLine& line : stage.metrics)
    for (const auto& [name, value] : line.*of) add_new(parts, name);
  return parts;
}

/// Rows spread evenly over the stage, first and last included.
Html loss_table(const Stage& stage, const std::vector<std::string>& parts) {
  std::vector<Column> columns = {{"Step"}, {"Tokens"}, {"Loss"}};
  for (const std::string& part : parts) columns.push_back({title_of_part(part)});
  columns.insert(columns.end(), {{"Gradient norm"}, {"Learning rate"}, {"Speed", "tokens/s"}});
  Table table("", columns);
  std::vector<const MetricsLine*> trained;  // step 0 has a held-out loss only
  for (const MetricsLine& line : stage.metrics)
    if (line.loss) trained.push_back(&line);
  const std::size_t lines = trained.size(), rows = std::min(lines, kMaxTableRows);
  for (std::size_t row = 0; row < rows; ++row) {
    const MetricsLine& line = *trained[rows == 1 ? 0 : row * (lines - 1) / (rows - 1)];
    std::vector<Html> cells = {std::to_string(line.step), count(static_cast<double>(line.tokens)),
                               fixed(line.loss, 4)};
    for (const std::string& part : parts) cells.push_back(fixed(named(line.parts, part), 4));
    for (const Number& value : {line.gradient_norm, line.lr, line.tokens_per_second})
      cells.push_back(significant(value));
    table.row(cells);
  }
  return table.html();
}

template <typename Value>
Points points_of(const Stage& stage, Value value) {
  Points points;
  for (const MetricsLine& line : stage.metrics)
    if (const Number y = value(line); y && std::isfinite(*y))
      points.emplace_back(static_cast<double>(line.tokens), *y);
  return points;
}

/// A line for the loss and one for each part; a single part that is the loss itself is not drawn twice.
std::vector<Series> loss_curves(const Stage& stage, const std::vector<std::string>& parts, Palette& colors) {
  std::vector<Series> curves;
  const auto add = [&](const std::string& name, Points points) {
    const std::size_t style = colors.color(name);
    if (!points.empty())
      curves.push_back({.name = name, .color = style, .dash = style, .points = std::move(points)});
  };
  add("loss", points_of(stage, [](const MetricsLine& line) { return line.loss; }));
  for (const std::string& part : parts)
    add(title_of_part(part),
        points_of(stage, [&](const MetricsLine& line) { return named(line.parts, part); }));
  for (const std::string& part : parts_of(stage, &MetricsLine::written_parts))
    add(title_of_part(part) + ", written",
        points_of(stage, [&](const MetricsLine& line) { return named(line.written_parts, part); }));
  if (curves.size() == 2 && curves[0].points == curves[1].points) curves.erase(curves.begin());
  if (curves.size() == 1) curves[0].dash = 0;
  return curves;
}

Html loss_figure(const Stage& stage, Palette& colors) {
  const std::vector<std::string> parts = parts_of(stage, &MetricsLine::parts);
  std::vector<Series> curves = loss_curves(stage, parts, colors);
  if (curves.empty()) return {};
  std::size_t stride = 1;
  for (Series& curve : curves) curve.points = thinned(curve.points, kMaxPoints, &stride);
  Html caption = element("strong", stage.name) + ": training loss";
  caption += curves.size() > 1
                 ? ", the weighted sum, and its parts without weights. What compares hidden states, as "
                   "SquareHead, is a ratio without unit."
                 : ".";
  if (stride > 1) caption += base::join(" Each point is the mean of ", stride, " steps.");
  const Chart chart{
      .abbreviated_x = true,
      .x_title = "tokens of the stage",
      .views = {{.name = stage.name, .y_title = "loss (nats per token)", .series = std::move(curves)}},
      .wide = false};
  return figure(chart, caption, loss_table(stage, parts));
}

double sum_of(const record::NamedNumbers& values) {
  double sum = 0;
  for (const auto& [name, value] : values) sum += value;
  return sum;
}

/// The steps that tell where their time went.  The first one, which warms up, counts only where it is alone.
std::vector<const MetricsLine*> timed_steps(const Stage& stage) {
  std::vector<const MetricsLine*> steps;
  for (const MetricsLine& line : stage.metrics)
    if (!line.phase_seconds.empty()) steps.push_back(&line);
  if (steps.size() > 1) steps.erase(steps.begin());
  return steps;
}

/// Seconds by name, of the mean step.
record::NamedNumbers mean_seconds(const std::vector<const MetricsLine*>& steps,
                                  record::NamedNumbers MetricsLine::*part) {
  record::NamedNumbers mean;
  for (const MetricsLine* line : steps)
    for (const auto& [name, seconds] : line->*part) {
      auto found = std::find_if(mean.begin(), mean.end(), [&](const auto& one) { return one.first == name; });
      if (found == mean.end()) found = mean.insert(mean.end(), {name, 0});
      found->second += seconds / static_cast<double>(steps.size());
    }
  return mean;
}

Table time_table(const Stage& stage, const char* what, const record::NamedNumbers& seconds,
                 double step_seconds, record::Key flops_per_token) {
  const auto tokens = batch_tokens(stage), peak = number(stage.result, keys::kMatrixProductFlops);
  Table table("", {{what, "", true},
                   {"Time", "s per step"},
                   {"Share", "of the step"},
                   {"Share of the matrix rate", "what is computed again does not count"}});
  for (const auto& [name, time] : seconds) {
    const auto flops = number(field(stage.result, flops_per_token), record::Key{name.c_str()});
    const Number rate =
        flops && tokens && peak && time > 0 ? Number(*flops * *tokens / time / *peak) : Number();
    table.row({title_of_part(name), significant(time), percent(time / step_seconds), percent(rate)});
  }
  return table;
}

/// Where the time of a step went, by its phases and by operations.
Html step_profile(const Stage& stage) {
  const auto steps = timed_steps(stage);
  if (steps.empty()) return {};
  const auto phases = mean_seconds(steps, &MetricsLine::phase_seconds);
  const double whole = sum_of(phases);
  auto tables = time_table(stage, "Phase", phases, whole, keys::kPhaseFlopsPerToken).html();
  auto operations = mean_seconds(steps, &MetricsLine::operation_seconds);
  if (!operations.empty()) {
    operations.emplace_back("all else", std::max(0.0, whole - sum_of(operations)));
    tables += time_table(stage, "Operation", operations, whole, keys::kOperationFlopsPerToken).html();
  }
  return details(stage.name + ": where the time of a step goes", tables);
}

}  // namespace

bool is_training(const Stage& stage) {
  return stage.kind == "train" || stage.kind == "finetune" || stage.kind == "distill" ||
         (stage.kind.empty() && !stage.metrics.empty());
}

Html training(const Run& run, Palette& palette) {
  std::vector<const Stage*> stages = training_stages(run);
  std::erase_if(stages, [](const Stage* stage) { return stage->result.is_null() && stage->metrics.empty(); });
  if (stages.empty()) return {};
  Html figures;
  Palette colors;  // of the parts of losses, alike in all figures
  for (const Stage* stage : stages) figures += loss_figure(*stage, colors);
  for (const Stage* stage : stages) figures += collectives(*stage);
  if (!figures.empty()) figures = element("div", {{"class", "figures"}}, figures);
  Html profiles;
  for (const Stage* stage : stages) profiles += step_profile(*stage);
  return summary_table(run, stages) + written_table(stages) + profiles + held_out_figures(stages, palette) +
         figures;
}

}  // namespace retort::report
