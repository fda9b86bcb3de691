#pragma once
// The tables and charts of a report page, read back out of its HTML.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "retort/base/json.h"

namespace retort::test {

/// A table as its reader sees it: titles, then the text of each cell; a cell with a picture is "<svg>".
struct PageTable {
  std::string section;  ///< id
  std::string caption;
  std::vector<std::string> titles;
  std::vector<std::vector<std::string>> rows;

  /// Cells of the first row that begins with `name`; empty without one.
  std::vector<std::string> row(const std::string& name) const {
    for (const auto& cells : rows)
      if (!cells.empty() && cells.front() == name) return cells;
    return {};
  }
};

namespace page {

/// What stands between each `open` and the next `close`; an element's attributes belong to it.
inline std::vector<std::string> between(const std::string& text, const std::string& open,
                                        const std::string& close) {
  std::vector<std::string> parts;
  for (std::size_t at = text.find(open); at != std::string::npos;) {
    const std::size_t start = at + open.size(), end = text.find(close, start);
    if (end == std::string::npos) break;
    parts.push_back(text.substr(start, end - start));
    at = text.find(open, end);
  }
  return parts;
}

inline std::string first(const std::vector<std::string>& parts) {
  return parts.empty() ? std::string() : parts.front();
}

/// The text of an element of which `html` begins in the middle of the opening tag.
inline std::string text_of(const std::string& html) {
  if (html.find("<svg") != std::string::npos) return "<svg>";
  std::string text;
  bool inside = true;
  for (const char c : html) {
    if (c == '<') inside = true;
    if (!inside) text += c;
    if (c == '>') inside = false;
  }
  return text;
}

inline std::vector<std::string> cells_of(const std::string& row) {
  std::vector<std::string> cells;
  std::size_t at = 0;
  while ((at = row.find("<t", at)) != std::string::npos) {
    const std::string end = row.substr(at, 3) == "<th" ? "</th>" : "</td>";
    cells.push_back(text_of(row.substr(at + 3, row.find(end, at) - at - 3)));
    at = row.find(end, at);
  }
  return cells;
}

inline PageTable table_of(const std::string& html, const std::string& section) {
  PageTable table{.section = section,
                  .caption = text_of(first(between(html, "<caption", "</caption>"))),
                  .titles = cells_of(first(between(html, "<tr", "</tr>"))),
                  .rows = {}};
  for (const auto& row : between(first(between(html, "<tbody>", "</tbody>")), "<tr", "</tr>"))
    table.rows.push_back(cells_of(row));
  return table;
}

}  // namespace page

inline std::vector<PageTable> tables_of(const std::string& html) {
  std::vector<PageTable> tables;
  for (const auto& section : page::between(html, "<section id=\"", "</section>"))
    for (const auto& table : page::between(section, "<table>", "</table>"))
      tables.push_back(page::table_of(table, section.substr(0, section.find('"'))));
  return tables;
}

/// The tables of one section that have a column of this title.
inline std::vector<PageTable> tables_with(const std::string& html, const std::string& section,
                                          const std::string& title) {
  std::vector<PageTable> found;
  for (auto& table : tables_of(html))
    if (table.section == section &&
        std::find(table.titles.begin(), table.titles.end(), title) != table.titles.end())
      found.push_back(std::move(table));
  return found;
}

inline std::vector<base::Json> charts_of(const std::string& html) {
  std::vector<base::Json> charts;
  for (const auto& text : page::between(html, "<script type=\"application/json\">", "</script>"))
    charts.push_back(base::parse_json(text));
  return charts;
}

}  // namespace retort::test
