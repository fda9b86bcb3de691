// What a profile found in each block.
#include <algorithm>

#include "retort/report/fields.h"
#include "retort/report/sections.h"

namespace retort::report {
namespace {

using base::Json;

Number quantile_of(const Json& tap, double wanted) {
  for (const Json& pair : elements(field(tap, keys::kQuantiles)))
    if (pair.is_array() && pair.size() == 2 && pair[0].is_number() && pair[0].get<double>() == wanted &&
        pair[1].is_number())
      return pair[1].get<double>();
  return {};
}

std::string massive_of(const Json& block) {
  std::string line;
  for (const Json& channel : elements(field(block, keys::kMassiveChannels)))
    line += (line.empty() ? "" : ", ") + fixed(number(channel, keys::kChannel), 0) + " (" +
            significant(number(channel, keys::kOverMedian), 3) + " x)";
  return line.empty() ? kMissing : line;
}

Html block_table(const Json& result) {
  Table table("", {{"Block", ""},
                   {"Channels", ""},
                   {"Inactive", ""},
                   {"Mean |a|", ""},
                   {"p50", ""},
                   {"p99", ""},
                   {"p99.9", ""},
                   {"Largest", ""},
                   {"Massive channels (largest |a| over the median channel's)", "", true}});
  for (const Json& block : elements(field(result, keys::kBlocks))) {
    const Json& tap = field(field(block, keys::kTaps), keys::kDownInput);
    table.row({fixed(number(block, keys::kBlock), 0), fixed(number(tap, keys::kFeatures), 0),
               std::to_string(elements(field(block, keys::kInactiveChannels)).size()),
               significant(number(tap, keys::kMean), 3), significant(quantile_of(tap, 0.5), 3),
               significant(quantile_of(tap, 0.99), 3), significant(quantile_of(tap, 0.999), 3),
               significant(number(tap, keys::kMaximum), 3), massive_of(block)});
  }
  return table.empty() ? Html() : table.html();
}

/// The high quantile and the maximum of channels per block.
Chart outlier_chart(const Json& result) {
  Chart chart{.bars = true, .from_zero = true, .x_title = "block"};
  View view{.name = "", .y_title = "|a| of MLP channels"};
  view.series = {{.name = "99.9 % (median channel)", .color = 0}, {.name = "largest", .color = 1}};
  for (const Json& block : elements(field(result, keys::kBlocks))) {
    const Json& tap = field(field(block, keys::kTaps), keys::kDownInput);
    if (!number(tap, keys::kMaximum)) continue;
    chart.labels.push_back(fixed(number(block, keys::kBlock), 0));
    view.series[0].values.push_back(quantile_of(tap, 0.999));
    view.series[1].values.push_back(number(tap, keys::kMaximum));
  }
  if (!chart.labels.empty()) chart.views.push_back(std::move(view));
  return chart;
}

Html profile_totals(const Json& result) {
  std::size_t inactive = 0;
  double channels = 0;
  for (const Json& block : elements(field(result, keys::kBlocks))) {
    inactive += elements(field(block, keys::kInactiveChannels)).size();
    channels += number(field(field(block, keys::kTaps), keys::kDownInput), keys::kFeatures).value_or(0);
  }
  if (channels == 0) return {};
  return element("p", fixed(number(result, keys::kTokens), 0) + " tokens; " + std::to_string(inactive) +
                          " of " + fixed(channels, 0) + " MLP channels are inactive.");
}

Html outliers(const Stage& stage) {
  const Chart chart = outlier_chart(stage.result);
  const Html table = block_table(stage.result);
  return profile_totals(stage.result) +
         (chart.views.empty()
              ? table
              : figure(chart, "Magnitudes of MLP channels on calibration text, block by block.", table));
}

}  // namespace

Html profiles(const Run& run) {
  return each_stage(run, "profile", outliers);
}

}  // namespace retort::report
