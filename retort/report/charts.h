#pragma once
// A chart as data: page.js draws it with Chart.js; the numbers stand in a table beneath.

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "retort/report/html.h"
#include "retort/report/numbers.h"

namespace retort::report {

using Points = std::vector<std::pair<double, double>>;

struct Series {
  std::string name = {};
  std::size_t color = 0;            ///< index into the page's palette, taken modulo its size
  std::size_t dash = 0;             ///< line pattern, so that lines differ without colour too
  bool marks = false;               ///< a mark at each point, for curves of few points
  Points points = {};               ///< line chart
  std::vector<Number> values = {};  ///< bar chart: one per label
};

/// One way to look at a chart; a chart with several gets buttons.
struct View {
  std::string name = {};
  std::string y_title = {};
  std::vector<Series> series = {};
};

struct Chart {
  bool bars = false;
  bool abbreviated_x = false;  ///< ticks as 20k, 1.5M
  bool from_zero = false;
  std::string x_title = {};
  std::vector<std::string> labels = {};  ///< bar chart: the groups
  std::vector<View> views = {};
  bool wide = true;  ///< the page's width; otherwise half of it
};

/// A figure: canvas, data, caption and, on demand, `table`.
Html figure(const Chart& chart, const Html& caption, const Html& table);

/// At most `limit` points, each the mean of as many neighbours; `stride` (if given) receives how many.
Points thinned(const Points& points, std::size_t limit, std::size_t* stride = nullptr);

/// One colour per name, the same in every chart of a page.
class Palette {
 public:
  std::size_t color(const std::string& name) {
    return colors_.try_emplace(name, colors_.size()).first->second;
  }

 private:
  std::map<std::string, std::size_t> colors_;
};

}  // namespace retort::report
