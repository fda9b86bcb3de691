#include "retort/report/generation_page.h"

#include "retort/report/charts.h"
#include "retort/report/fields.h"
#include "retort/report/page.h"

namespace retort::report {
namespace {

using base::Json;

constexpr const char* kGenerator = "retort bench generate";

struct Shown {
  const char* measure;
  const char* title;
  double unit;
  int digits;
};
constexpr Shown kCharts[] = {{"first_token_seconds", "time to first token (ms)", 1e3, 2},
                             {"prompts_per_second", "prompts per second", 1, 3},
                             {"tokens_per_second", "tokens per second", 1, 1},
                             {"between_tokens_seconds", "time between tokens (ms)", 1e3, 3}};

const Json& works_of(const Json& rates) {
  return entry(rates, "works");
}

std::string name_of(const Json& model) {
  return text(entry(model, "name"));
}

Number scaled(const Json& model, const Shown& shown, const char* which) {
  const Number value = number(entry(entry(entry(model, "measures"), shown.measure), which));
  return value ? Number(*value * shown.unit) : value;
}

// A series for each model, a group of bars for each batch and length.
Chart chart_of(const Json& rates, const Shown& shown) {
  Chart chart{.bars = true, .from_zero = true, .wide = false};
  View view{.name = shown.title, .y_title = shown.title};
  for (const Json& work : elements(works_of(rates))) {
    chart.labels.push_back(text(entry(work, "place")));
    std::size_t which = 0;
    for (const Json& model : elements(entry(work, "models"))) {
      if (view.series.size() <= which)
        view.series.push_back({.name = name_of(model), .color = which, .dash = which});
      view.series[which].values.push_back(scaled(model, shown, "mean"));
      ++which;
    }
  }
  chart.views.push_back(std::move(view));
  return chart;
}

Html numbers_of(const Json& rates, const Shown& shown) {
  Table table(Html(), {{"Model", "", true}, {"At", "", true}, {"Mean"}, {"Deviation"}});
  for (const Json& work : elements(works_of(rates)))
    for (const Json& model : elements(entry(work, "models")))
      table.row({name_of(model), text(entry(work, "place")),
                 fixed(scaled(model, shown, "mean"), shown.digits),
                 fixed(scaled(model, shown, "deviation"), shown.digits)});
  return table.html();
}

Html figures(const Json& rates) {
  Html all;
  for (const Shown& shown : kCharts)
    all += figure(chart_of(rates, shown), std::string(shown.title) + ", mean over runs.",
                  numbers_of(rates, shown));
  return all;
}

std::string interval_text(const Json& ratio) {
  const auto& ends = elements(entry(ratio, "interval"));
  if (ends.size() != 2) return kMissing;
  return fixed(number(ends[0]), 3) + " to " + fixed(number(ends[1]), 3);
}

Html ratios(const Json& rates) {
  Table table(
      "How many times the baseline's: geometric mean over pairs of runs, and its 95 % interval. Of "
      "times less than 1 is better.",
      {{"Model", "", true},
       {"At", "", true},
       {"Tokens/s"},
       {"95 % interval"},
       {"p"},
       {"Prompts/s"},
       {"Time to first token"},
       {"95 % interval"}});
  for (const Json& work : elements(works_of(rates)))
    for (const Json& model : elements(entry(work, "models"))) {
      const Json& found = entry(model, "ratios");
      if (!found.is_object()) continue;
      const Json &tokens = entry(found, "tokens_per_second"), &first = entry(found, "first_token_seconds");
      table.row({name_of(model), text(entry(work, "place")), fixed(number(entry(tokens, "ratio")), 3),
                 interval_text(tokens), fixed(number(entry(tokens, "p")), 4),
                 fixed(number(entry(entry(found, "prompts_per_second"), "ratio")), 3),
                 fixed(number(entry(first, "ratio")), 3), interval_text(first)});
    }
  return table.empty() ? Html() : table.html();
}

Html conclusions(const Json& rates) {
  Html good, warned;
  for (const Json& one : elements(entry(rates, "conclusions"))) {
    const auto sentence = element("p", text(entry(one, "sentence")));
    (entry(one, "warns") == Json(true) ? warned : good) += sentence;
  }
  if (!warned.empty())
    warned = element("aside", element("p", "A smaller model is not always a faster one:") + warned);
  return good + warned;
}

std::string length_text(const Json& rates) {
  const auto tokens = text(entry(rates, "new_tokens"));
  return text(entry(rates, "length")) == "free"
             ? "at most " + tokens + ", ended by the model, so work differs"
             : tokens + ", the same work for all";
}

Html facts(const Json& rates) {
  const Json &machine = entry(rates, "machine"), &energy = entry(rates, "energy");
  const auto prompts = text(entry(rates, "prompts"));
  Html list;
  const auto fact = [&](const char* name, const std::string& value) {
    list += element("div", element("dt", name) + element("dd", value));
  };
  fact("Processor", text(entry(machine, "processor")) + ", " + text(entry(machine, "threads")) + " threads");
  fact("Device", text(entry(machine, "device")) + ", " + text(entry(rates, "dtype")));
  fact("Runs", text(entry(rates, "runs")) + " of each model in turn, after " + text(entry(rates, "warmup")));
  fact("Prompts", prompts.empty() ? "random ids" : prompts);
  fact("New tokens", length_text(rates));
  fact("Energy", entry(energy, "measured") == Json(true) ? "of all that the machine does meanwhile"
                                                         : "not measured: " + text(entry(energy, "why_not")));
  fact("Baseline", text(entry(rates, "baseline")));
  return element("dl", {{"class", "facts"}}, list);
}

}  // namespace

std::string generation_page(const Json& rates) {
  Html body = element("p", {{"class", "kicker"}}, "Retort bench") +
              element("h1", "Time to first token and tokens per second") + facts(rates) + conclusions(rates);
  body += element("section", {{"id", "ratios"}}, element("h2", "Against the baseline") + ratios(rates));
  body += element("section", {{"id", "figures"}}, element("h2", "Models side by side") + figures(rates));
  body +=
      element("p", {{"class", "note"}},
              "Alone, at batch 1, a text's first token is counted from where the text before it ended. In a "
              "batch all prompts wait from the beginning of the run, so queueing counts. Loading a model and "
              "packing its weights do not count.");
  return page_of("Time to first token", body + page_footer(), kGenerator);
}

bool is_generation_page(std::string_view beginning) {
  return beginning.starts_with("<!DOCTYPE html>") &&
         beginning.find(std::string("name=\"generator\" content=\"") + kGenerator) != beginning.npos;
}

}  // namespace retort::report
