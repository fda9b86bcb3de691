#include "retort/report/charts.h"

namespace retort::report {
namespace {

using base::Json;

Json series_json(const Series& series) {
  Json result = {{"name", clean_text(series.name)},
                 {"color", series.color},
                 {"dash", series.dash},
                 {"marks", series.marks}};
  Json data = Json::array();
  for (const auto& [x, y] : series.points) data.push_back(Json{{"x", x}, {"y", y}});
  for (const Number& value : series.values) data.push_back(value ? Json(*value) : Json());
  result["data"] = std::move(data);
  return result;
}

Json chart_json(const Chart& chart) {
  Json views = Json::array();
  for (const View& view : chart.views) {
    Json series = Json::array();
    for (const Series& one : view.series) series.push_back(series_json(one));
    views.push_back(
        {{"name", clean_text(view.name)}, {"y", clean_text(view.y_title)}, {"series", std::move(series)}});
  }
  Json labels = Json::array();
  for (const std::string& label : chart.labels) labels.push_back(clean_text(label));
  return {
      {"type", chart.bars ? "bar" : "line"}, {"tokens", chart.abbreviated_x}, {"zero", chart.from_zero},
      {"x", clean_text(chart.x_title)},      {"labels", std::move(labels)},   {"views", std::move(views)}};
}

}  // namespace

Html figure(const Chart& chart, const Html& caption, const Html& table) {
  const Html canvas = element(
      "div", {{"class", "canvas"}},
      element("canvas", {{"role", "img"}, {"aria-label", "Chart; its numbers are in the table below it."}},
              ""));
  const Html numbers = table.empty() ? Html() : details("Numbers of this figure", table);
  return element("figure", {{"class", chart.wide ? "chart wide" : "chart"}},
                 canvas + json_script(chart_json(chart)) + element("figcaption", caption) + numbers);
}

Points thinned(const Points& points, std::size_t limit, std::size_t* stride) {
  const std::size_t step = points.size() <= limit ? 1 : (points.size() + limit - 1) / limit;
  if (stride != nullptr) *stride = step;
  Points result;
  for (std::size_t start = 0; start < points.size(); start += step) {
    const std::size_t end = std::min(points.size(), start + step);
    double x = 0, y = 0;
    for (std::size_t i = start; i < end; ++i) {
      x += points[i].first;
      y += points[i].second;
    }
    const auto size = static_cast<double>(end - start);
    result.emplace_back(x / size, y / size);
  }
  return result;
}

}  // namespace retort::report
