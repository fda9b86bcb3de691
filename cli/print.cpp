#include "cli/print.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ostream>

#include "retort/base/error.h"
#include "retort/base/printable.h"

namespace retort::cli {
namespace {

using base::Json;

std::string dumped(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

bool is_list_of_texts(const Json& value) {
  return value.is_array() &&
         std::all_of(value.begin(), value.end(), [](const Json& x) { return x.is_string(); });
}

bool holds_sentences(const Json& value) {
  return is_list_of_texts(value) && std::any_of(value.begin(), value.end(), [](const Json& x) {
           return x.get<std::string>().ends_with('.');
         });
}

// Counts that are computed in floating point are counts.
std::string shown(double value) {
  constexpr double kLargestCount = 1e15;
  if (std::abs(value) < kLargestCount && value == std::trunc(value)) return base::join(std::llround(value));
  return base::join(value);
}

std::string shown(const Json& value) {
  if (value.is_string()) return base::printable(value.get_ref<const std::string&>());
  if (value.is_null()) return "none";
  if (value.is_number_float()) return shown(value.get<double>());
  if (!is_list_of_texts(value)) return dumped(value);
  std::string row;
  for (const Json& text : value) row += (row.empty() ? "" : ", ") + shown(text);
  return value.empty() ? "none" : row;
}

bool is_list_of_objects(const Json& value) {
  return value.is_array() && !value.empty() &&
         std::all_of(value.begin(), value.end(), [](const Json& x) { return x.is_object(); });
}

std::string in_one_line(const Json& object) {
  std::string line;
  for (const auto& [key, value] : object.items())
    line += base::join(line.empty() ? "" : ", ", base::printable(key), " ", shown(value));
  return line;
}

void print_object(std::ostream& out, const Json& object, std::size_t indent) {
  std::size_t width = 0;
  for (const auto& [key, value] : object.items())
    if (!value.is_object()) width = std::max(width, base::printable(key).size());
  for (const auto& [key, value] : object.items()) {
    out << std::string(indent, ' ') << base::printable(key);
    if (value.is_object()) {
      out << '\n';
      print_object(out, value, indent + 2);
    } else if (is_list_of_objects(value)) {
      out << '\n';
      for (const Json& one : value) out << std::string(indent + 2, ' ') << in_one_line(one) << '\n';
    } else if (holds_sentences(value)) {
      out << '\n';
      for (const Json& text : value) out << std::string(indent + 2, ' ') << shown(text) << '\n';
    } else {
      out << std::string(width - base::printable(key).size() + 2, ' ') << shown(value) << '\n';
    }
  }
}

}  // namespace

std::string fixed(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

void print(std::ostream& out, const Json& result, bool as_json) {
  if (as_json || !result.is_object())
    out << dumped(result) << '\n';
  else
    print_object(out, result, 0);
}

std::string table(Rows rows, std::size_t left) {
  for (auto& row : rows)
    for (auto& cell : row) cell = base::printable(cell);
  std::vector<std::size_t> widths(rows.front().size(), 0);
  for (const auto& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  std::string out;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string space(widths[i] - row[i].size(), ' ');
      line += (i ? "  " : "") + (i < left ? row[i] + space : space + row[i]);
    }
    out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return out;
}

std::string unescaped(const std::string& text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char next = text[i] == '\\' && i + 1 < text.size() ? text[i + 1] : '\0';
    const char* escapes = "n\nt\tr\r\\\\";
    const char* found = escapes;
    while (*found && *found != next) found += 2;
    if (next == '\0' || *found == '\0') {
      plain += text[i];
    } else {
      plain += found[1];
      ++i;
    }
  }
  return plain;
}

}  // namespace retort::cli
