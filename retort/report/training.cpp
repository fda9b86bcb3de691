// Curves of the training stages, and their memory plans beside what was used.
#include <algorithm>
#include <cmath>
#include <map>

#include "retort/report/fields.h"
#include "retort/report/sections.h"

namespace retort::report {
namespace {

using base::Json;

constexpr std::size_t kMaxPoints = 600;    // of a curve: more than the pixels of a line need
constexpr std::size_t kMaxTableRows = 40;  // of the numbers beneath a figure

struct Part {
  const char* key;
  const char* name;
};

constexpr Part kParts[] = {{"loss", "loss (weighted sum)"},
                           {"cross_entropy", "cross-entropy"},
                           {"kl_divergence", "KL divergence"},
                           {"squarehead", "SquareHead"}};

std::vector<const Stage*> training_stages(const RunFiles& run) {
  std::vector<const Stage*> stages;
  for (const Stage& stage : run.stages)
    if (is_training(stage)) stages.push_back(&stage);
  return stages;
}

Points points_of(const std::vector<Json>& metrics, const std::string& key) {
  Points points;
  for (const Json& line : metrics) {
    const auto tokens = number(line, "tokens"), value = number(line, key);
    if (tokens && value) points.emplace_back(*tokens, *value);
  }
  return points;
}

/// Of one source, or with an empty name the mean over all of them.
Number held_out_of(const Json& values, const std::string& source) {
  if (!source.empty()) return number(values, source);
  if (!values.is_object() || values.empty()) return number(values);
  double sum = 0;
  for (const Json& value : values) {
    const auto one = number(value);
    if (!one) return {};
    sum += *one;
  }
  return sum / static_cast<double>(values.size());
}

enum class Against { tokens, steps };

Number progress_of(const Json& line, Against against) {
  if (against == Against::tokens) return number(line, "tokens");
  const auto step = number(line, "step");  // a line of metrics; the result of a stage has `steps`
  return step ? step : number(line, "steps");
}

Points held_out_points(const Stage& stage, const std::string& source, Against against = Against::tokens) {
  Points points;
  const auto add = [&](const Json& line, const Json& values) {
    const auto x = progress_of(line, against), value = held_out_of(values, source);
    if (x && value && (points.empty() || points.back().first < *x)) points.emplace_back(*x, *value);
  };
  for (const Json& line : stage.metrics) add(line, field(line, "held_out"));
  add(stage.result, field(field(stage.result, "final"), "held_out"));
  return points;
}

std::vector<std::string> held_out_sources(const std::vector<const Stage*>& stages) {
  std::vector<std::string> names;
  const auto add = [&](const Json& values) {
    if (!values.is_object()) return;
    for (const auto& [name, value] : values.items())
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  };
  for (const Stage* stage : stages) {
    for (const Json& line : stage->metrics) add(field(line, "held_out"));
    add(field(field(stage->result, "final"), "held_out"));
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
  const std::string from = text(stage.recipe, "from");
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

Html summary_table(const RunFiles& run, const std::vector<const Stage*>& stages) {
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
    const Json& last = stage->metrics.empty() ? stage->result : stage->metrics.back();
    const auto own = [&](const char* key, const char* metrics_key) {
      const auto value = number(stage->result, key);
      return value ? value : number(last, metrics_key);
    };
    const auto tokens = own("tokens", "tokens"), time = number(stage->result, "seconds");
    const auto loss = number(field(stage->result, "final"), "loss");
    const Points held_out = held_out_points(*stage, "");
    table.row({stage->name, stage->kind, count(parameters_of(run, *stage)), fixed(own("steps", "step"), 0),
               count(tokens), seconds(time),
               significant(tokens && time && *time > 0 ? Number(*tokens / *time)
                                                       : number(last, "tokens_per_second")),
               fixed(loss ? loss : number(last, "loss"), 4),
               fixed(held_out.empty() ? Number() : Number(held_out.back().second), 4)});
  }
  return table.html();
}

/// Rows spread evenly over the stage, first and last included.
Html loss_table(const Stage& stage, const std::vector<Part>& parts) {
  std::vector<Column> columns = {{"Step"}, {"Tokens"}};
  for (const Part& part : parts) columns.push_back({part.name});
  columns.insert(columns.end(), {{"Gradient norm"}, {"Learning rate"}, {"Speed", "tokens/s"}});
  Table table("", columns);
  const std::size_t lines = stage.metrics.size(), rows = std::min(lines, kMaxTableRows);
  for (std::size_t row = 0; row < rows; ++row) {
    const Json& line = stage.metrics[rows == 1 ? 0 : row * (lines - 1) / (rows - 1)];
    std::vector<Html> cells = {fixed(number(line, "step"), 0), count(number(line, "tokens"))};
    for (const Part& part : parts) cells.push_back(fixed(number(line, part.key), 4));
    cells.push_back(significant(number(line, "grad_norm")));
    cells.push_back(significant(number(line, "lr")));
    cells.push_back(significant(number(line, "tokens_per_second")));
    table.row(cells);
  }
  return table.html();
}

/// The loss and its parts as far as they were logged; a single part that is the loss itself is not drawn
/// twice.
std::vector<Part> logged_parts(const Stage& stage) {
  std::vector<Part> parts;
  for (const Part& part : kParts)
    if (!points_of(stage.metrics, part.key).empty()) parts.push_back(part);
  if (parts.size() == 2 && points_of(stage.metrics, parts[0].key) == points_of(stage.metrics, parts[1].key))
    parts.erase(parts.begin());
  return parts;
}

Html loss_figure(const Stage& stage) {
  const std::vector<Part> parts = logged_parts(stage);
  if (parts.empty()) return {};
  const bool squarehead = parts.back().key == std::string_view("squarehead");
  View view{.name = stage.name, .y_title = "loss (nats per token)"};
  std::size_t stride = 1;
  for (const Part& part : parts) {
    const auto style = static_cast<std::size_t>(
        std::find_if(std::begin(kParts), std::end(kParts), [&](const Part& p) { return p.key == part.key; }) -
        std::begin(kParts));
    view.series.push_back({.name = part.name,
                           .color = style,
                           .dash = parts.size() == 1 ? 0 : style,
                           .points = thinned(points_of(stage.metrics, part.key), kMaxPoints, &stride)});
  }
  const Chart chart{
      .abbreviated_x = true, .x_title = "tokens of the stage", .views = {std::move(view)}, .wide = false};
  Html caption =
      element("strong", stage.name) + ": training loss" + (parts.size() > 1 ? " and its parts." : ".");
  if (squarehead) caption += " SquareHead is a ratio without unit; the parts are shown unweighted.";
  if (stride > 1)
    caption += " Each point is the mean of " + fixed(static_cast<double>(stride), 0) + " steps.";
  return figure(chart, caption, loss_table(stage, parts));
}

}  // namespace

bool is_training(const Stage& stage) {
  return stage.kind == "train" || stage.kind == "finetune" || stage.kind == "distill" ||
         (stage.kind.empty() && !stage.metrics.empty());
}

Html training(const RunFiles& run, Palette& palette) {
  std::vector<const Stage*> stages = training_stages(run);
  std::erase_if(stages, [](const Stage* stage) { return stage->result.is_null() && stage->metrics.empty(); });
  if (stages.empty()) return {};
  Html figures;
  for (const Stage* stage : stages) figures += loss_figure(*stage);
  if (!figures.empty()) figures = element("div", {{"class", "figures"}}, figures);
  return summary_table(run, stages) + held_out_figures(stages, palette) + figures;
}

Html costs(const RunFiles& run) {
  Table table(
      "What each stage took. Tensors are those in the memory of the processor, planned at most before the "
      "stage began; the peak of the process is that of all stages of its run so far.",
      {{"Stage", "", true},
       {"Kind", "", true},
       {"Time", ""},
       {"Planned", ""},
       {"Peak of tensors", ""},
       {"Peak of the process", ""}});
  for (const Stage& stage : run.stages)
    if (number(stage.result, "peak_tensor_bytes"))
      table.row({stage.name, stage.kind, seconds(number(stage.result, "seconds")),
                 bytes(number(is_training(stage) ? field(stage.result, "memory") : stage.result,
                              is_training(stage) ? "planned_bytes" : "memory_planned_bytes")),
                 bytes(number(stage.result, "peak_tensor_bytes")),
                 bytes(number(stage.result, "process_peak_bytes"))});
  return table.empty() ? Html() : table.html();
}

Html memory(const RunFiles& run) {
  std::vector<const Stage*> stages = training_stages(run);
  std::erase_if(stages, [](const Stage* stage) { return !field(stage->result, "memory").is_object(); });
  if (stages.empty()) return {};
  std::vector<std::string> purposes;
  std::vector<Column> columns = {{"Purpose", "", true}};
  for (const Stage* stage : stages) {
    columns.push_back({stage->name});
    for (const Json& entry : elements(field(field(stage->result, "memory"), "plan")))
      if (const std::string what = text(entry, "what");
          std::find(purposes.begin(), purposes.end(), what) == purposes.end())
        purposes.push_back(what);
  }
  Table table("Bytes planned before the first step, by purpose, and the peaks that were measured.", columns);
  const auto row = [&](const Html& title, const char* css_class, auto cell) {
    std::vector<Html> cells = {title};
    for (const Stage* stage : stages) cells.push_back(cell(field(stage->result, "memory")));
    table.row(cells, css_class);
  };
  for (const std::string& purpose : purposes)
    row(purpose, "", [&](const Json& plan) {
      double sum = 0;
      bool found = false;
      for (const Json& entry : elements(field(plan, "plan")))
        if (text(entry, "what") == purpose) sum += number(entry, "bytes").value_or(0), found = true;
      return bytes(found ? Number(sum) : Number());
    });
  row("Planned", "sum", [](const Json& plan) { return bytes(number(plan, "planned_bytes")); });
  row("Measured peak", "", [](const Json& plan) { return bytes(number(plan, "peak_bytes")); });
  row("Measured / planned", "", [](const Json& plan) {
    const auto planned = number(plan, "planned_bytes"), peak = number(plan, "peak_bytes");
    return percent(planned && peak && *planned > 0 ? Number(*peak / *planned) : Number());
  });
  row("Peak of the process", "", [](const Json& plan) { return bytes(number(plan, "process_peak_bytes")); });
  return table.html();
}

}  // namespace retort::report
