#pragma once
// Markup that is safe by construction: text becomes Html only through escaping; markup of our own is built
// from elements.  Nothing else in this layer writes '<'.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "retort/base/json.h"

namespace retort::report {

class Html {
 public:
  Html() = default;
  /// Escapes; invalid UTF-8 and control characters become U+FFFD.
  Html(std::string_view text);
  Html(const std::string& text) : Html(std::string_view(text)) {}
  Html(const char* text) : Html(std::string_view(text)) {}
  /// Takes markup as it is; only for what this layer itself wrote.
  static Html markup(std::string trusted);

  Html& operator+=(const Html& more);
  const std::string& str() const { return markup_; }
  bool empty() const { return markup_.empty(); }

 private:
  std::string markup_;
};

Html operator+(Html left, const Html& right);

using Attributes = std::vector<std::pair<std::string, std::string>>;

/// <tag name="value">content</tag>; attribute values are escaped.
Html element(const std::string& tag, const Attributes& attributes, const Html& content);
Html element(const std::string& tag, const Html& content);

/// JSON for the inside of a script element: ASCII, and no character that could end it.
std::string script_json(const base::Json& value);
Html json_script(const base::Json& value);

/// Text that opens on demand.
Html details(const std::string& summary, const Html& body);

/// Valid UTF-8 without control characters other than tab and newline: what is wrong becomes U+FFFD.
std::string clean_text(std::string_view text);

struct Column {
  std::string title;
  std::string unit = {};
  bool words = false;  ///< left-aligned text, not a number
};

/// A table with a caption; cells of a column are aligned as the column says.
class Table {
 public:
  Table(Html caption, std::vector<Column> columns)
      : caption_(std::move(caption)), columns_(std::move(columns)) {}

  void row(const std::vector<Html>& cells, const std::string& css_class = {});
  bool empty() const { return rows_.empty(); }
  Html html() const;

 private:
  Html caption_;
  std::vector<Column> columns_;
  Html rows_;
};

}  // namespace retort::report
