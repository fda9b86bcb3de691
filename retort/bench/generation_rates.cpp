#include "retort/bench/generation_rates.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "retort/base/error.h"
#include "retort/base/printable.h"
#include "retort/bench/rates.h"

namespace retort::bench {
namespace {

using base::join;
using base::Json;

std::string digits(double value, int behind_the_point) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", behind_the_point, value);
  return text;
}

// Every value has one of each run, or none has.
std::vector<double> values_of(const std::vector<RunMeasures>& runs, Measure measure) {
  std::vector<double> values;
  for (const auto& run : runs)
    if (const auto& value = value_of(run, measure); value && *value > 0) values.push_back(*value);
  return values.size() == runs.size() ? values : std::vector<double>();
}

struct Spread {
  double mean = 0, deviation = 0;
};

Spread spread_of(const std::vector<double>& values) {
  Spread spread;
  const auto count = static_cast<double>(values.size());
  for (const double value : values) spread.mean += value / count;
  double squares = 0;
  for (const double value : values) squares += (value - spread.mean) * (value - spread.mean);
  if (values.size() > 1) spread.deviation = std::sqrt(squares / (count - 1));
  return spread;
}

Json to_json(const PairedRatio& found) {
  Json json = {{"ratio", found.ratio}, {"interval", nullptr}, {"p", found.p}};
  if (found.interval) json["interval"] = {found.interval->low, found.interval->high};
  return json;
}

std::string prompt_lengths(const GenerationWork& work) {
  return work.shortest_prompt == work.longest_prompt
             ? join(work.longest_prompt)
             : join(work.shortest_prompt, " to ", work.longest_prompt);
}

// Lengths are named where there are several.
std::string place_of(const GenerationBench& bench, const GenerationWork& work) {
  const bool several = std::ranges::any_of(bench.runs, [&](const GenerationRuns& other) {
    return other.work.longest_prompt != work.longest_prompt;
  });
  const auto place = join("batch ", work.batch);
  return several ? join(place, ", prompts of ", prompt_lengths(work)) : place;
}

Json measures_json(const std::vector<RunMeasures>& runs) {
  Json json = Json::object();
  for (std::size_t i = 0; i < kMeasures; ++i) {
    const auto measure = static_cast<Measure>(i);
    const auto values = values_of(runs, measure);
    if (values.empty()) continue;
    const auto spread = spread_of(values);
    json[std::string(base::word(measure))] = {
        {"mean", spread.mean}, {"deviation", spread.deviation}, {"runs", values}};
  }
  return json;
}

Json ratios_json(const std::vector<RunMeasures>& runs, const std::vector<RunMeasures>& baseline) {
  Json json = Json::object();
  for (std::size_t i = 0; i < kMeasures; ++i) {
    const auto measure = static_cast<Measure>(i);
    const auto values = values_of(runs, measure), others = values_of(baseline, measure);
    if (!values.empty() && !others.empty())
      json[std::string(base::word(measure))] = to_json(paired_ratio(values, others));
  }
  return json;
}

PairedRatio rates_of(const GenerationRuns& runs, std::size_t model, std::size_t baseline) {
  return paired_ratio(values_of(runs.by_model[model], Measure::tokens_per_second),
                      values_of(runs.by_model[baseline], Measure::tokens_per_second));
}

Json work_json(const GenerationBench& bench, const GenerationRuns& runs) {
  const auto& work = runs.work;
  Json models = Json::array();
  for (std::size_t i = 0; i < bench.models.size(); ++i) {
    const auto name = base::as_utf8(bench.models[i].name);
    Json one = {{"name", name}, {"measures", measures_json(runs.by_model[i])}};
    if (i != bench.baseline) {
      const auto rates = rates_of(runs, i, bench.baseline);
      one["ratios"] = ratios_json(runs.by_model[i], runs.by_model[bench.baseline]);
      one["standing"] = base::word(standing_of(rates));
      one["verdict"] =
          sentence_of(name, base::as_utf8(bench.models[bench.baseline].name), place_of(bench, work), rates);
    }
    models.push_back(one);
  }
  return {{"place", place_of(bench, work)},
          {"batch", work.batch},
          {"texts", work.texts},
          {"shortest_prompt_tokens", work.shortest_prompt},
          {"longest_prompt_tokens", work.longest_prompt},
          {"models", models}};
}

// Places have commas of their own.
std::string listed(const std::vector<std::string>& places) {
  std::string list = places.front();
  for (std::size_t i = 1; i < places.size(); ++i)
    list += (i + 1 < places.size() ? "; " : " and ") + places[i];
  return list;
}

// Where a model stands how.
struct Places {
  std::array<std::vector<std::string>, words_of(Standing{}).size()> by_standing;

  const std::vector<std::string>& of(Standing standing) const {
    return by_standing[static_cast<std::size_t>(standing)];
  }
};

Places places_of(const GenerationBench& bench, std::size_t model) {
  Places places;
  for (const auto& runs : bench.runs) {
    const auto standing = standing_of(rates_of(runs, model, bench.baseline));
    places.by_standing[static_cast<std::size_t>(standing)].push_back(place_of(bench, runs.work));
  }
  return places;
}

std::string size_of(const GenerationModel& model, const GenerationModel& baseline) {
  if (model.parameters == baseline.parameters) return join("as large as ", baseline.name);
  const double share = static_cast<double>(model.parameters) / static_cast<double>(baseline.parameters);
  return join("with ", digits(share, 2), " of the parameters of ", baseline.name);
}

// What follows "is".
std::string standing_words(const Places& places, std::size_t all) {
  const auto &faster = places.of(Standing::faster), &slower = places.of(Standing::slower),
             &open = places.of(Standing::not_told_apart);
  std::vector<std::string> parts;
  const auto add = [&](const char* what, const std::vector<std::string>& where) {
    if (!where.empty())
      parts.push_back(where.size() == all ? join(what, " everywhere") : join(what, " at ", listed(where)));
  };
  add("faster", faster);
  add("slower", slower);
  if (slower.empty() && !faster.empty() && !open.empty()) parts.push_back("slower nowhere");
  if (open.size() == all)
    parts.push_back("told apart nowhere");
  else
    add("not told apart", open);
  std::string words = parts.front();
  for (std::size_t i = 1; i < parts.size(); ++i) words += ", " + parts[i];
  return words;
}

// A sentence of all places, and whether it is what a smaller model is not made for.
Json conclusion_of(const GenerationBench& bench, std::size_t which) {
  const auto &model = bench.models[which], &baseline = bench.models[bench.baseline];
  const auto places = places_of(bench, which);
  const auto all = bench.runs.size(), runs = bench.runs.front().by_model[which].size();
  const bool judged = runs >= kLeastPairs;
  const auto sentence =
      join(model.name, ", ", size_of(model, baseline), ", is ",
           judged ? standing_words(places, all)
                  : join("not judged, because an interval takes ", kLeastPairs, " runs at least"),
           model.same_ids || model.random_weights
               ? ""
               : "; it has other ids in its prompts, so tokens/s are of other amounts of text",
           model.packing == baseline.packing
               ? ""
               : join("; this compares other packings too: its weights lie in ", model.packing, ", those of ",
                      baseline.name, " in ", baseline.packing),
           ".");
  const auto& expected =
      places.of(model.parameters < baseline.parameters ? Standing::faster : Standing::slower);
  const bool warns = judged && model.parameters != baseline.parameters && expected.size() < all;
  return {{"model", base::as_utf8(model.name)}, {"sentence", base::as_utf8(sentence)}, {"warns", warns}};
}

Json model_json(const GenerationModel& model) {
  return {{"name", base::as_utf8(model.name)},
          {"parameters", model.parameters},
          {"flops_per_token", model.flops_per_token},
          {"weights", model.random_weights ? "random" : "read"},
          {"same_ids", model.same_ids},
          {"packing", model.packing}};
}

}  // namespace

Standing standing_of(const PairedRatio& rates) {
  if (rates.interval && rates.interval->low > 1) return Standing::faster;
  if (rates.interval && rates.interval->high < 1) return Standing::slower;
  return Standing::not_told_apart;
}

std::string sentence_of(const std::string& model, const std::string& baseline, const std::string& place,
                        const PairedRatio& rates) {
  const auto interval = rates.interval ? join("95 %: ", digits(rates.interval->low, 3), " to ",
                                              digits(rates.interval->high, 3), ", ")
                                       : std::string("too few runs for an interval, ");
  return join(model, ": ", digits(rates.ratio, 3), " times the tokens/s of ", baseline, " at ", place, " (",
              interval, "p = ", digits(rates.p, 4), ")");
}

Json generation_json(const GenerationBench& bench) {
  Json models = Json::array(), works = Json::array(), conclusions = Json::array();
  for (const auto& model : bench.models) models.push_back(model_json(model));
  for (const auto& runs : bench.runs) works.push_back(work_json(bench, runs));
  for (std::size_t i = 0; i < bench.models.size(); ++i)
    if (i != bench.baseline) conclusions.push_back(conclusion_of(bench, i));
  Json energy = {{"measured", bench.no_energy.empty()}};
  if (bench.no_energy.empty())
    energy["zones"] = bench.energy_zones;
  else
    energy["why_not"] = bench.no_energy;
  return {{"format", kRatesFormat},
          {"kind", "generate"},
          {"machine", bench::to_json(bench.machine)},
          {"dtype", bench.dtype},
          {"prompts", bench.prompts.empty() ? Json(nullptr) : Json(base::as_utf8(bench.prompts))},
          {"new_tokens", bench.new_tokens},
          {"length", bench.free_length ? "free" : "fixed"},
          {"runs", bench.runs.empty() ? 0 : bench.runs.front().by_model.front().size()},
          {"warmup", bench.warmup},
          {"energy", energy},
          {"models", models},
          {"baseline", base::as_utf8(bench.models[bench.baseline].name)},
          {"works", works},
          {"conclusions", conclusions}};
}

}  // namespace retort::bench
