// What the ranks of a stage exchanged.
#include <algorithm>
#include <array>
#include <map>

#include "retort/base/error.h"
#include "retort/base/units.h"
#include "retort/report/fields.h"
#include "retort/report/sections.h"

namespace retort::report {
namespace {

using base::Json;

// Calls of one operation and size, per step of a stage that trains, else of the whole stage.
struct Calls {
  std::string group, operation;
  double ranks = 0, bytes = 0, calls = 0, moved_bytes = 0, seconds = 0, waited_seconds = 0;
  Number ring_bytes = {};
};

// A start that goes on counts its own steps alone.
double steps_of(const Stage& stage) {
  if (!is_training(stage)) return 1;
  auto steps = number(stage.result, keys::kCollectivesSteps);
  if (!steps) steps = number(stage.result, keys::kSteps);  // of earlier versions
  return steps.value_or(0);
}

std::vector<Calls> calls_of(const Stage& stage) {
  std::vector<Calls> all;
  const double steps = steps_of(stage);
  if (steps <= 0) return all;
  for (const Json& json : elements(field(stage.result, keys::kCollectives))) {
    const auto per_step = [&](record::Key key) {
      const auto value = number(json, key);
      return value ? Number(*value / steps) : Number();
    };
    const auto calls = per_step(keys::kCalls), moved = per_step(keys::kMovedBytes),
               time = per_step(keys::kSeconds), waited = per_step(keys::kExposedSeconds);
    if (!calls || !moved || !time || !waited || *calls <= 0) continue;
    all.push_back({.group = text(json, keys::kGroup),
                   .operation = title_of_part(text(json, keys::kOperation)),
                   .ranks = number(json, keys::kRanks).value_or(0),
                   .bytes = number(json, keys::kBytes).value_or(0),
                   .calls = *calls,
                   .moved_bytes = *moved,
                   .seconds = *time,
                   .waited_seconds = *waited,
                   .ring_bytes = per_step(keys::kRingBytes)});
  }
  return all;
}

/// bandwidth: of what each rank read from others.
Html table_of(const std::vector<Calls>& all, const std::string& of) {
  Table table("", {{"Group", "ranks", true},
                   {"Operation", "", true},
                   {"Size", "of one call"},
                   {"Calls", of},
                   {"Moved", "read from other ranks, " + of},
                   {"Of a ring", "the same by formula"},
                   {"Time", "ms per call"},
                   {"Waited", "share of that time"},
                   {"Bandwidth", "GB/s"}});
  for (const auto& calls : all) {
    const bool timed = calls.seconds > 0;
    table.row({calls.group + base::join(" (", static_cast<int>(calls.ranks), ")"), calls.operation,
               bytes(calls.bytes), significant(calls.calls), bytes(calls.moved_bytes),
               bytes(calls.ring_bytes), significant(1e3 * calls.seconds / calls.calls),
               percent(timed ? Number(std::min(1.0, calls.waited_seconds / calls.seconds)) : Number()),
               significant(timed ? Number(calls.moved_bytes / calls.seconds / 1e9) : Number())});
  }
  return table.html();
}

// Sizes of a call, each class up to its bound.
constexpr std::array<double, 6> kSizeBounds{1e3, 32e3, 1e6, 8e6, 64e6, 512e6};

std::size_t class_of(double bytes) {
  return static_cast<std::size_t>(std::lower_bound(kSizeBounds.begin(), kSizeBounds.end(), bytes) -
                                  kSizeBounds.begin());
}

std::vector<std::string> size_labels() {
  std::vector<std::string> labels;
  for (const double bound : kSizeBounds)
    labels.push_back("up to " + base::human_bytes(static_cast<std::uint64_t>(bound)));
  labels.push_back("more");
  return labels;
}

View histogram(const std::vector<Calls>& all, const char* name, const std::string& y_title,
               double Calls::*value, double factor) {
  View view{.name = name, .y_title = y_title};
  std::map<std::string, std::size_t> places;  // of operations, in the order of their first call
  for (const auto& calls : all) {
    const auto [place, is_new] = places.try_emplace(calls.operation, places.size());
    if (is_new)
      view.series.push_back({.name = calls.operation,
                             .color = place->second,
                             .values = std::vector<Number>(kSizeBounds.size() + 1)});
    auto& bar = view.series[place->second].values[class_of(calls.bytes)];
    bar = bar.value_or(0) + factor * calls.*value;
  }
  return view;
}

}  // namespace

Html collectives(const Stage& stage) {
  const auto all = calls_of(stage);
  if (all.empty()) return {};
  const std::string of = is_training(stage) ? "per step" : "in all";
  const Chart chart{
      .bars = true,
      .from_zero = true,
      .x_title = "size of one call",
      .labels = size_labels(),
      .views = {histogram(all, "Calls", "calls (" + of + ")", &Calls::calls, 1),
                histogram(all, "Bytes", "read from other ranks (MB " + of + ")", &Calls::moved_bytes, 1e-6),
                histogram(all, "Time", "time (ms " + of + ")", &Calls::seconds, 1e3)}};
  return figure(
      chart,
      element("strong", stage.name) +
          (is_training(stage)
               ? ": what its ranks exchanged, by operation and size. Held-out losses and checkpoints are "
                 "included, spread over the steps. Time overlaps with computing."
               : ": what its ranks exchanged, by operation and size. The time of a call includes waiting for "
                 "ranks that come later."),
      table_of(all, of));
}

Html exchanged(const Run& run) {
  Html figures;
  for (const Stage& stage : run.stages)
    if (!is_training(stage)) figures += collectives(stage);
  return figures.empty() ? figures : element("div", {{"class", "figures"}}, figures);
}

}  // namespace retort::report
