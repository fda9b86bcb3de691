#pragma once
// What every page carries inside itself; the text is embedded when the project is configured.

#include <string_view>

namespace retort::report {

extern const std::string_view kChartScript;  ///< Chart.js 3.9, MIT licence
extern const std::string_view kPageScript;   ///< page.js: turns the JSON beside each canvas into a chart
extern const std::string_view kPageStyle;    ///< page.css

}  // namespace retort::report
