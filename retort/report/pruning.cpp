// A picture of what is left of the model, and why: decisions of the stepwise search, the course of others.
#include <algorithm>
#include <set>

#include "retort/report/differences.h"
#include "retort/report/fields.h"
#include "retort/report/sections.h"

namespace retort::report {
namespace {

using base::Json;

constexpr std::size_t kMaxBlocks = 4096;
constexpr std::size_t kMaxChannels = std::size_t{1} << 22;
constexpr std::size_t kMaxNumbers = std::size_t{1} << 25;  // in the lists of all blocks
constexpr std::size_t kCells = 128;                        // of the channel picture

/// The model before and after, as far as the result tells.
struct Survivors {
  std::size_t blocks = 0;                          ///< of the original model
  std::size_t width = 0;                           ///< channels of an original MLP
  bool width_known = false;                        ///< otherwise at least this
  std::vector<std::size_t> kept;                   ///< original index of each block that is left
  std::vector<std::vector<std::size_t>> channels;  ///< of each block that is left
  std::vector<std::vector<std::size_t>> groups;    ///< KV groups of each block that is left; none: not known
  std::map<std::size_t, std::string> dropped_at;   ///< original index -> step
};

/// A pair stands for any number of channels, so a small file could ask for all memory.
std::vector<std::vector<std::size_t>> lists_of(const Json& value) {
  std::vector<std::vector<std::size_t>> lists;
  std::size_t room = kMaxNumbers;
  for (const Json& list : elements(value)) {
    lists.push_back(indices(list, std::min(room, kMaxChannels)));
    room -= lists.back().size();
  }
  return lists;
}

Survivors survivors_of(const Json& result) {
  Survivors model;
  const Json& kept = field(result, keys::kKept);
  model.kept = indices(field(kept, keys::kBlocks), kMaxBlocks);
  model.groups = lists_of(field(kept, keys::kKvGroups));
  model.channels = lists_of(field(kept, keys::kChannels));
  for (const auto& list : model.channels)
    for (const std::size_t channel : list) model.width = std::max(model.width, channel + 1);
  for (const std::size_t block : model.kept) model.blocks = std::max(model.blocks, block + 1);
  for (const Json& decision : elements(field(result, keys::kDecisions))) {
    const auto block = number(decision, keys::kBlock);
    if (text(decision, keys::kAction) != "drop_block" || !block || *block < 0 || *block >= kMaxBlocks)
      continue;
    const auto index = static_cast<std::size_t>(*block);
    model.blocks = std::max(model.blocks, index + 1);
    model.dropped_at[index] = fixed(number(decision, keys::kStep), 0);
  }
  if (const auto blocks = number(result, keys::kBlocksBefore); blocks && *blocks >= 0 && *blocks < kMaxBlocks)
    model.blocks = std::max(model.blocks, static_cast<std::size_t>(*blocks));
  if (const auto width = number(result, keys::kWidthBefore); width && *width >= 0 && *width < kMaxChannels) {
    model.width = std::max(model.width, static_cast<std::size_t>(*width));
    model.width_known = true;
  }
  return model;
}

/// Kept channels along the original width: the darker a cell, the more of its channels are kept.
Html channel_strip(const std::vector<std::size_t>& channels, std::size_t width) {
  const std::size_t cells = std::min(width, kCells);
  if (cells == 0) return {};
  std::vector<double> kept(cells, 0), all(cells, 0);
  for (std::size_t channel = 0; channel < width; ++channel) all[channel * cells / width] += 1;
  for (const std::size_t channel : std::set<std::size_t>(channels.begin(), channels.end()))
    if (channel < width) kept[channel * cells / width] += 1;
  Html bars;
  for (std::size_t start = 0; start < cells;) {
    const std::string opacity = fixed(kept[start] / all[start], 1);
    std::size_t end = start + 1;
    while (end < cells && fixed(kept[end] / all[end], 1) == opacity) ++end;
    if (opacity != "0.0")
      bars += element("rect",
                      {{"x", std::to_string(start)},
                       {"width", std::to_string(end - start)},
                       {"height", "1"},
                       {"fill-opacity", opacity}},
                      "");
    start = end;
  }
  return element("svg",
                 {{"class", "strip"},
                  {"viewBox", "0 0 " + std::to_string(cells) + " 1"},
                  {"preserveAspectRatio", "none"},
                  {"aria-hidden", "true"}},
                 bars);
}

Html width_bar(std::size_t kept, std::size_t width) {
  const double share = width == 0 ? 0 : 100.0 * static_cast<double>(kept) / static_cast<double>(width);
  return element(
      "svg",
      {{"class", "bar"}, {"viewBox", "0 0 100 1"}, {"preserveAspectRatio", "none"}, {"aria-hidden", "true"}},
      element("rect", {{"class", "frame"}, {"width", "100"}, {"height", "1"}}, "") +
          element("rect", {{"width", fixed(share, 1)}, {"height", "1"}}, ""));
}

/// "3: 0 1 3", or the count alone where there are many.
std::string numbered(const std::vector<std::size_t>& groups) {
  constexpr std::size_t kMost = 16;
  std::string line = std::to_string(groups.size());
  if (groups.empty() || groups.size() > kMost) return line;
  line += ':';
  for (const auto group : groups) line.append(1, ' ').append(std::to_string(group));
  return line;
}

void picture_row(Table& table, const Survivors& model, std::size_t block) {
  const auto found = std::find(model.kept.begin(), model.kept.end(), block);
  const std::string name = std::to_string(block);
  if (found == model.kept.end()) {
    const auto step = model.dropped_at.find(block);
    table.row({name, step == model.dropped_at.end() ? "dropped" : "dropped in step " + step->second, kMissing,
               kMissing, "", ""},
              "dropped");
    return;
  }
  const auto position = static_cast<std::size_t>(found - model.kept.begin());
  const std::string now = "kept as block " + std::to_string(position);
  const auto groups =
      position < model.groups.size() ? numbered(model.groups[position]) : std::string(kMissing);
  if (position >= model.channels.size()) {
    table.row({name, now, groups, kMissing, "", ""});
    return;
  }
  const auto& channels = model.channels[position];
  table.row({name, now, groups, std::to_string(channels.size()), width_bar(channels.size(), model.width),
             channel_strip(channels, model.width)});
}

Html picture(const Survivors& model) {
  if (model.kept.empty()) return {};
  const std::string width = std::to_string(model.width);
  Table table(
      Html("The model, one row per original block. The bar is the share of MLP channels that is kept") +
          (model.width_known ? Html(" of " + width)
                             : Html(" of the " + width + " up to the last that is kept")) +
          "; the strip shows which, from the first channel to the last: the darker, the more of them.",
      {{"Block", ""},
       {"", "", true},
       {"KV groups", "and which", true},
       {"Channels", ""},
       {"Share kept", "", true},
       {"Which channels", "", true}});
  for (std::size_t block = 0; block < model.blocks; ++block) picture_row(table, model, block);
  return element("div", {{"class", "picture"}}, table.html());
}

std::string what_of(const Json& decision) {
  const std::string action = text(decision, keys::kAction);
  if (action == "drop_block") return "drop block " + fixed(number(decision, keys::kBlock), 0);
  const std::string width = fixed(number(decision, keys::kWidth), 0);
  if (action == "narrow") return "narrow MLPs to " + width;
  if (action == "narrow_attention") return "narrow attentions to " + width + " KV groups";
  if (action == "narrow_hidden") return "narrow hidden states to " + width;
  return action;
}

/// f per parameter is tiny; per million parameters it reads.
std::string per_million(const Json& decision) {
  const auto score = number(decision, keys::kScore);
  return significant(score ? Number(*score * 1e6) : Number());
}

Html decision_table(const Json& result) {
  Table table("The stepwise search: in each step the candidate with the least f per parameter removed.",
              {{"Step", ""},
               {"Decision", "", true},
               {"f", "nats"},
               {"Parameters", "removed"},
               {"f per parameter", "nats per million"},
               {"Candidates", ""}});
  for (const Json& decision : elements(field(result, keys::kDecisions)))
    table.row({fixed(number(decision, keys::kStep), 0), what_of(decision),
               fixed(number(decision, keys::kObjective), 4),
               count(number(decision, keys::kParametersRemoved)), per_million(decision),
               std::to_string(elements(field(decision, keys::kCandidates)).size())});
  return table.empty() ? Html() : table.html();
}

Html candidate_table(const Json& result) {
  Table table("", {{"Step", ""},
                   {"Candidate", "", true},
                   {"f", "nats"},
                   {"Parameters", "removed"},
                   {"f per parameter", "nats per million"}});
  for (const Json& decision : elements(field(result, keys::kDecisions)))
    for (const Json& candidate : elements(field(decision, keys::kCandidates))) {
      const bool chosen = what_of(candidate) == what_of(decision);
      table.row({fixed(number(decision, keys::kStep), 0), what_of(candidate),
                 fixed(number(candidate, keys::kObjective), 4),
                 count(number(candidate, keys::kParametersRemoved)), per_million(candidate)},
                chosen ? "chosen" : "");
    }
  return table.empty() ? Html() : details("All candidates that were measured", table.html());
}

/// What was fitted again to what stays, and whether that helped on text that it was not fitted to.
Html compensation_table(const Json& result) {
  const Json& compensation = field(result, keys::kCompensation);
  const bool all_kept = is_true(compensation, keys::kKept);
  Table table("", {{"Layer", "", true}, {"", "", true}});
  for (const Json& layer : elements(field(compensation, keys::kLayers))) {
    const bool singular = is_true(layer, keys::kSingular);
    const bool fitted = all_kept && is_true(layer, keys::kKept);
    table.row({text(layer, keys::kName), singular ? "singular, stays as it was"
                                         : fitted ? "fitted"
                                                  : "stays as it was"});
  }
  if (table.empty()) return {};
  const std::string before = fixed(number(compensation, keys::kHeldOutObjectiveBefore), 4),
                    after = fixed(number(compensation, keys::kHeldOutObjectiveAfter), 4);
  return details(std::string("Layers fitted again to what stays, ") +
                     (is_true(compensation, keys::kEachAlone) ? "each alone" : "one after the other") +
                     ": f on the documents that choose " + before + " before, " + after + " after" +
                     (all_kept ? "" : ", so all stay as they were"),
                 table.html());
}

bool was_searched(const Stage& stage) {
  return stage.kind == "prune" && !elements(field(stage.result, keys::kCurve)).empty();
}

/// Best objective so far against what was spent, a line for each stage that searched.
Html search_figure(const Run& run) {
  Palette palette;
  View view{.name = "", .y_title = "best f so far (nats)"};
  bool compensated = false;
  Table table("", {{"Stage", "", true},
                   {"Method", "", true},
                   {"Units", "", true},
                   {"f", "nats"},
                   {"\u0394 log perplexity", "nats"},
                   {"KL", "nats per token"},
                   {"Worst domain", "", true},
                   {"Evaluations", ""},
                   {"Tokens", "spent"},
                   {"f believed", "same text"},
                   {"f saved", "same text"},
                   {"f uncompensated", ""}});
  for (const Stage& stage : run.stages) {
    if (!was_searched(stage)) continue;
    const Json& result = stage.result;
    const auto color = palette.color(stage.name);
    Series series{.name = stage.name, .color = color, .dash = color, .marks = true};
    for (const Json& point : elements(field(result, keys::kCurve)))
      if (const auto& pair = elements(point); pair.size() == 2 && number(pair[0]) && number(pair[1]))
        series.points.emplace_back(*number(pair[0]), *number(pair[1]));
    if (const auto spent = number(result, keys::kTokensSpent); spent && !series.points.empty())
      series.points.emplace_back(*spent, series.points.back().second);
    view.series.push_back(std::move(series));
    compensated = compensated || is_true(result, keys::kComparedAfterCompensation);
    table.row({stage.name, text(result, keys::kMethod), text(result, keys::kUnits),
               fixed(number(result, keys::kObjective), 4),
               fixed(number(result, keys::kDeltaLogPerplexity), 4), fixed(number(result, keys::kKl), 4),
               text(result, keys::kWorstDomain), count(number(result, keys::kEvaluations)),
               count(number(result, keys::kTokensSpent)),
               fixed(number(field(result, keys::kBelieved), keys::kCandidate), 4),
               fixed(number(field(result, keys::kBelieved), keys::kSaved), 4),
               fixed(number(result, keys::kObjectiveUncompensated), 4)});
  }
  if (view.series.empty()) return {};
  const Chart chart{
      .abbreviated_x = true, .x_title = "tokens spent (passes of the whole model)", .views = {view}};
  std::string caption =
      "The searches: the best candidate so far, measured on the documents that choose. Searches, their "
      "starts and the curves take the KL over the teacher's 512 most likely tokens and one outcome for all "
      "others, a lower bound; the table is exact. Its f, KL and change of log perplexity are those of the "
      "saved "
      "model on documents that chose nothing. Believed and saved are f of the chosen candidate as the search "
      "saw it and of the saved model, both on the documents that chose it.";
  if (compensated)
    caption +=
        " Searches compare candidates as compensation would leave them; f uncompensated is that of the same "
        "parts before their weights were fitted.";
  return figure(chart, caption, table.html());
}

/// What a search began from.
Html start_table(const Json& result) {
  Table table("What the search began from, with the same f as in its curve.",
              {{"", "", true},
               {"f", "nats"},
               {"\u0394 log perplexity", "nats"},
               {"KL", "nats per token"},
               {"Worst domain", "", true}});
  const Json& starts = field(result, keys::kStarts);
  if (!starts.is_object()) return {};
  for (const auto& [name, start] : starts.items())
    table.row({name, fixed(number(start, keys::kObjective), 4),
               fixed(number(start, keys::kDeltaLogPerplexity), 4), fixed(number(start, keys::kKl), 4),
               text(start, keys::kWorstDomain)});
  return table.empty() ? Html() : details("What the search began from", table.html());
}

/// The best candidates of a search, and which of them the calibration text tells apart.
Html finalist_table(const Json& result) {
  Table table(
      "The best candidates. Tied: not worse than the first beyond chance, by the interval of the difference "
      "over documents of the calibration text (95 % for all rows together; \u2013: fewer than eight "
      "documents of a source, or equal ones, tell nothing). Bytes are those of weights and "
      "one sequence of keys and values in 16 bits, time is that of a forward pass of one sequence, " +
          timing_of(result) + ". " + kLimitsOfIntervals,
      {{"", ""},
       {"f", "nats"},
       {"\u0394 log perplexity", "nats"},
       {"KL", "nats per token"},
       {"Worst domain", "", true},
       {"Behind the first", "nats"},
       {"Interval", ""},
       {"", "", true},
       {"Blocks", ""},
       {"Parameters", ""},
       {"Bytes", ""},
       {"FLOPs", "per token"},
       {"Time", "ms"}});
  const auto& finalists = elements(field(result, keys::kFinalists));
  if (finalists.size() < 2) return {};
  const auto row = [&](const std::string& place, const std::string& tied, const Json& one) {
    table.row({place, fixed(number(one, keys::kObjective), 4),
               fixed(number(one, keys::kDeltaLogPerplexity), 4), fixed(number(one, keys::kKl), 4),
               text(one, keys::kWorstDomain), fixed(number(one, keys::kBehind), 4), interval_of(one), tied,
               count(number(one, keys::kBlocks)), count(number(one, keys::kParameters)),
               bytes(number(one, keys::kBytes)), count(number(one, keys::kFlopsPerToken)),
               fixed(milliseconds(one), 1)});
  };
  for (std::size_t i = 0; i < finalists.size(); ++i)
    row(std::to_string(i + 1), standing_of(finalists[i]), finalists[i]);
  if (const Json& before = field(result, keys::kCostBefore); before.is_object()) row("before", "", before);
  return details("The best candidates and which of them are tied", table.html());
}

/// Before and after, as far as both are known.
Html costs(const Json& result) {
  const Json &before = field(result, keys::kCostBefore), &after = field(result, keys::kCost);
  if (!before.is_object() || !after.is_object()) return {};
  return element("p", "A forward pass of one sequence takes " + fixed(milliseconds(after), 1) +
                          " ms instead of " + fixed(milliseconds(before), 1) + " (" + timing_of(result) +
                          "); weights and one sequence of keys and values in 16 bits " +
                          bytes(number(after, keys::kBytes)) + " instead of " +
                          bytes(number(before, keys::kBytes)) + "; FLOPs per token " +
                          count(number(after, keys::kFlopsPerToken)) + " instead of " +
                          count(number(before, keys::kFlopsPerToken)) + ".");
}

Html pruning_totals(const Json& result) {
  const auto before = number(result, keys::kParametersBefore), after = number(result, keys::kParametersAfter),
             target = number(result, keys::kParametersTarget);
  if (!before || !after || *before <= 0) return {};
  Html line = Html("From " + count(before) + " to " + count(after) + " parameters, " +
                   percent(*after / *before) + " of the original");
  if (target) line += "; the target was " + count(target);
  const auto& latency = field(result, keys::kLatency);
  const auto taken = [&](record::Key key) { return fixed(1000 * number(latency, key).value_or(0), 2); };
  if (number(latency, keys::kSecondsAfter))
    line += "; by the times of its parts a token takes " + taken(keys::kSecondsAfter) + " ms instead of " +
            taken(keys::kSecondsBefore) + ", the target was " + taken(keys::kTargetSeconds) + " ms";
  const auto hidden = indices(field(field(result, keys::kKept), keys::kHidden), kMaxChannels).size();
  if (const auto all = number(result, keys::kHiddenBefore);
      all && hidden > 0 && static_cast<double>(hidden) < *all)
    line += "; hidden states of " + count(static_cast<double>(hidden)) + " of " + count(all) + " features";
  return element("p", line + ".") + costs(result);
}

Html where_it_loads(const Json& result) {
  const auto loads = text(result, keys::kLoads);
  return loads.empty() ? Html() : element("p", "The model loads " + loads + ".");
}

Html what_was_pruned(const Stage& stage) {
  const auto& result = stage.result;
  return pruning_totals(result) + where_it_loads(result) + picture(survivors_of(result)) +
         decision_table(result) + candidate_table(result) + start_table(result) + finalist_table(result) +
         compensation_table(result);
}

}  // namespace

Html pruning(const Run& run) {
  return each_stage(run, "prune", what_was_pruned) + search_figure(run);
}

}  // namespace retort::report
