// Scores of the evaluate stages: the table, the same per source, and bars.
#include <algorithm>
#include <array>

#include "retort/report/differences.h"
#include "retort/report/fields.h"
#include "retort/report/sections.h"

namespace retort::report {
namespace {

using base::Json;

struct Metric {
  record::Key key;
  const char* name;
  const char* y_title;
  double scale;
};

constexpr Metric kMetrics[] = {
    {keys::kBitsPerByte, "Bits per byte", "held-out loss (bits per byte)", 1},
    {keys::kPerplexity, "Perplexity", "held-out perplexity (per token)", 1},
    {keys::kKl, "KL", "KL to the teacher (nats per token)", 1},
    {keys::kTop1Agreement, "Top-1 agreement", "top-1 agreement with the teacher (%)", 100},
};

Number fraction_nonzero(const Json& model) {
  const auto all = number(model, keys::kParameters), nonzero = number(model, keys::kNonzeroParameters);
  if (!all || !nonzero || *all <= 0) return {};
  return *nonzero / *all;
}

Html summary_table(const Json& result) {
  Table table(
      "Mean over the held-out part of all sources. Recovery is the teacher\u2019s perplexity divided by the "
      "model\u2019s.",
      {{"Model", "", true},
       {"Perplexity", "per token"},
       {"Recovery", ""},
       {"Parameters", ""},
       {"KL", "nats per token"},
       {"Top-1", "agreement"},
       {"Loss", "bits per byte"},
       {"Non-zero", ""},
       {"File", ""},
       {"Speed", "tokens/s"}});
  const std::string teacher = text(result, keys::kTeacher);
  for (const Json& model : elements(field(result, keys::kModels))) {
    const Json& mean = field(model, keys::kMean);
    table.row({label_of(model), fixed(number(mean, keys::kPerplexity), 2),
               percent(number(mean, keys::kRecovery)), count(number(model, keys::kParameters)),
               fixed(number(mean, keys::kKl), 4), percent(number(mean, keys::kTop1Agreement)),
               fixed(number(mean, keys::kBitsPerByte), 4), percent(fraction_nonzero(model), 0),
               bytes(number(model, keys::kFileBytes)), significant(number(model, keys::kTokensPerSecond))},
              text(model, keys::kName) == teacher ? "reference" : "");
  }
  return table.empty() ? Html() : table.html();
}

/// Mean confidence minus accuracy.
std::string percentage_points(const Json& scores) {
  const auto gap = number(scores, keys::kConfidenceGap);
  return signed_fixed(gap ? Number(*gap * 100) : Number(), 2);
}

Html confidence_table(const Json& result) {
  Table table(
      "Loss above the teacher\u2019s on the same documents, with the interval that 2,000 draws of documents "
      "give, "
      "and how far the probability of the most likely token is from how often it is right: the expected "
      "calibration error over 15 bins, and the mean with its sign, positive where a model is "
      "overconfident. " +
          std::string(kLimitsOfIntervals),
      {{"Model", "", true},
       {"Documents", ""},
       {"NLL \u2212 teacher\u2019s", "nats per token"},
       {"Interval", "95 %"},
       {"Calibration error", ""},
       {"Confidence \u2212 accuracy", "percentage points"}});
  const std::string teacher = text(result, keys::kTeacher);
  for (const Json& model : elements(field(result, keys::kModels))) {
    if (!documents(model)) continue;
    const std::string name = text(model, keys::kName);
    const Difference difference = nll_difference(model, name == teacher);
    const Json& mean = field(model, keys::kMean);
    table.row({label_of(model), count(documents(model)), difference.value, difference.interval,
               percent(number(mean, keys::kEce), 2), percentage_points(mean)},
              name == teacher ? "reference" : "");
  }
  return table.empty() ? Html() : table.html();
}

Html source_table(const Json& result) {
  Table table("", {{"Model", "", true},
                   {"Source", "", true},
                   {"Tokens", ""},
                   {"Bytes", ""},
                   {"NLL", "nats per token"},
                   {"Perplexity", "per token"},
                   {"Loss", "bits per byte"},
                   {"KL", "nats per token"},
                   {"Top-1", "agreement"},
                   {"Calibration error", ""},
                   {"Confidence \u2212 accuracy", "percentage points"}});
  for (const Json& model : elements(field(result, keys::kModels)))
    for (const Json& source : elements(field(model, keys::kSources)))
      table.row({label_of(model), text(source, keys::kName), count(number(source, keys::kTokens)),
                 bytes(number(source, keys::kBytes)), fixed(number(source, keys::kNll), 4),
                 fixed(number(source, keys::kPerplexity), 2), fixed(number(source, keys::kBitsPerByte), 4),
                 fixed(number(source, keys::kKl), 4), percent(number(source, keys::kTop1Agreement)),
                 percent(number(source, keys::kEce), 2), percentage_points(source)});
  return table.empty() ? Html() : table.html();
}

/// Source names over all models, in order of appearance.
std::vector<std::string> source_names(const Json& result) {
  std::vector<std::string> names;
  for (const Json& model : elements(field(result, keys::kModels)))
    for (const Json& source : elements(field(model, keys::kSources)))
      if (const std::string name = text(source, keys::kName);
          std::find(names.begin(), names.end(), name) == names.end())
        names.push_back(name);
  return names;
}

Series bars_of(const Json& model, const Metric& metric, const std::vector<std::string>& sources,
               Palette& palette) {
  const auto scaled = [&](const Json& scores) {
    const auto value = number(scores, metric.key);
    return value ? Number(*value * metric.scale) : Number();
  };
  Series series{.name = label_of(model), .color = palette.color(text(model, keys::kName))};
  for (const std::string& name : sources) {
    const auto& all = elements(field(model, keys::kSources));
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const Json& s) { return text(s, keys::kName) == name; });
    series.values.push_back(found == all.end() ? Number() : scaled(*found));
  }
  if (sources.size() != 1) series.values.push_back(scaled(field(model, keys::kMean)));
  return series;
}

bool has_values(const View& view) {
  return std::any_of(view.series.begin(), view.series.end(), [](const Series& series) {
    return std::any_of(series.values.begin(), series.values.end(),
                       [](const Number& value) { return value.has_value(); });
  });
}

Html scores_figure(const Json& result, Palette& palette) {
  const std::vector<std::string> sources = source_names(result);
  Chart chart{.bars = true, .from_zero = true, .x_title = "source of the held-out text", .labels = sources};
  if (sources.size() != 1) chart.labels.push_back("mean");
  for (const Metric& metric : kMetrics) {
    View view{.name = metric.name, .y_title = metric.y_title};
    for (const Json& model : elements(field(result, keys::kModels)))
      view.series.push_back(bars_of(model, metric, sources, palette));
    if (has_values(view)) chart.views.push_back(std::move(view));
  }
  if (chart.views.empty()) return {};
  const auto context = number(result, keys::kContext);
  return figure(chart,
                Html("Held-out scores per model and source") +
                    (context ? Html(", " + text(result, keys::kWindows) + " windows of " + fixed(context, 0) +
                                    " tokens.")
                             : Html(".")),
                source_table(result));
}

constexpr double kFewTargets = 10;  // a mean of fewer says nothing

/// Accuracy against confidence of one source, or with an empty name of all together.
Points reliability(const Json& model, const std::string& source) {
  std::vector<std::array<double, 3>> sums;  // of each bin: targets, confidence, right ones
  for (const Json& scores : elements(field(model, keys::kSources))) {
    if (!source.empty() && text(scores, keys::kName) != source) continue;
    const auto& bins = elements(field(scores, keys::kConfidenceBins));
    sums.resize(std::max(sums.size(), bins.size()));
    for (std::size_t i = 0; i < bins.size(); ++i) {
      const auto& bin = elements(bins[i]);
      if (bin.size() != 3) continue;
      const double targets = number(bin[0]).value_or(0);
      sums[i][0] += targets;
      sums[i][1] += targets * number(bin[1]).value_or(0);
      sums[i][2] += targets * number(bin[2]).value_or(0);
    }
  }
  Points points;
  for (const auto& [targets, confidence, right] : sums)
    if (targets >= kFewTargets) points.emplace_back(confidence / targets, right / targets);
  return points;
}

Html reliability_figure(const Json& result, Palette& palette) {
  const std::vector<std::string> sources = source_names(result);
  std::vector<std::string> choices = {""};
  if (sources.size() > 1) choices.insert(choices.end(), sources.begin(), sources.end());
  Chart chart{.from_zero = true, .x_title = "probability of the most likely token (mean of a bin)"};
  for (const std::string& source : choices) {
    View view{.name = source.empty() ? "All sources" : source,
              .y_title = "how often it is right (share of tokens)"};
    for (const Json& model : elements(field(result, keys::kModels))) {
      const std::string name = text(model, keys::kName);
      const std::size_t color = palette.color(name);
      if (Points points = reliability(model, source); !points.empty())
        view.series.push_back({.name = label_of(model),
                               .color = color,
                               .dash = color,
                               .marks = true,
                               .points = std::move(points)});
    }
    if (view.series.empty()) continue;
    view.series.push_back(
        {.name = "as often as it is sure", .color = 7, .dash = 2, .points = {{0, 0}, {1, 1}}});
    chart.views.push_back(std::move(view));
  }
  if (chart.views.empty()) return {};
  return figure(
      chart,
      "How often the most likely token is right, against its probability: below the diagonal a model is "
      "overconfident, above it underconfident. Bins of fewer than 10 tokens are left out.",
      {});
}

}  // namespace

Html scores(const Run& run, Palette& palette) {
  Html body;
  const auto evaluations = std::count_if(run.stages.begin(), run.stages.end(), [](const Stage& stage) {
    return measures_models(stage) && stage.result.is_object();
  });
  for (const Stage& stage : run.stages) {
    if (!measures_models(stage)) continue;
    const Html table = summary_table(stage.result);
    if (table.empty()) continue;
    if (evaluations > 1) body += element("h3", stage.name);
    body += table;
    for (const auto& note : dequantised_notes(stage.result))
      body += element("p", {{"class", "note"}}, note.model + ": " + note.text + ".");
    body += confidence_table(stage.result) + scores_figure(stage.result, palette) +
            reliability_figure(stage.result, palette);
  }
  return body;
}

/// What a model made of each prompt.
Html card(const Json& model) {
  Html texts;
  for (const Json& generation : elements(field(model, keys::kGenerations))) {
    const std::string prompt = text(generation, keys::kPrompt);
    std::string answer = text(generation, keys::kText);
    if (answer.empty()) continue;
    const bool chat = !field(generation, keys::kMessages).is_null();
    if (!chat && !prompt.empty() && answer.starts_with(prompt)) answer.erase(0, prompt.size());
    texts += element("p", {{"dir", "auto"}},
                     element("span", {{"class", "prompt"}}, prompt) + (chat ? "\n" : "") + answer);
  }
  if (texts.empty()) return {};
  return element("figure", element("figcaption", label_of(model)) + texts);
}

Html generated(const Run& run) {
  Html body;
  for (const Stage& stage : run.stages) {
    if (!measures_models(stage)) continue;
    Html cards;
    for (const Json& model : elements(field(stage.result, keys::kModels))) cards += card(model);
    if (!cards.empty()) body += element("div", {{"class", "texts"}}, cards);
  }
  if (body.empty()) return {};
  return element("p", {{"class", "note"}}, "The prompt is set in grey; what follows is the model\u2019s.") +
         body;
}

}  // namespace retort::report
