#include "retort/tasks/task_file.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <string_view>

#include "retort/base/error.h"
#include "retort/base/units.h"
#include "retort/io/quote.h"

namespace retort::tasks {
namespace {

using base::Json;
using io::YamlValue;
constexpr std::size_t kMostFiles = 64;

template <std::size_t kCount>
bool is_any(std::string_view text, const std::string_view (&words)[kCount]) {
  return std::find(std::begin(words), std::end(words), text) != std::end(words);
}

bool all_of(std::string_view text, std::string_view characters) {
  return text.find_first_not_of(characters) == text.npos;
}

std::string without_underscores(std::string_view text) {
  std::string plain(text);
  std::erase(plain, '_');
  return plain;
}

// A whole number of YAML 1.1, in base 2, 8, 10 or 16.
std::optional<Json> whole(std::string_view text) {
  const bool negative = text.starts_with('-');
  auto digits = text.starts_with('-') || text.starts_with('+') ? text.substr(1) : text;
  int base = 10;
  if (digits.starts_with("0b") || digits.starts_with("0x")) {
    base = digits[1] == 'b' ? 2 : 16;
    digits.remove_prefix(2);
  } else if (digits.size() > 1 && digits[0] == '0') {
    base = 8;
    digits.remove_prefix(1);
  }
  static constexpr std::string_view kDigits = "_0123456789abcdefABCDEF";
  const auto known = kDigits.substr(0, base == 16 ? kDigits.size() : static_cast<std::size_t>(base) + 1);
  if (digits.empty() || !all_of(digits, known) || (base == 10 && digits[0] == '_')) return std::nullopt;
  const auto plain = without_underscores(digits);
  std::uint64_t value = 0;
  const auto result = std::from_chars(plain.data(), plain.data() + plain.size(), value, base);
  if (result.ec != std::errc() ||
      value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
    return std::nullopt;
  const auto number = static_cast<std::int64_t>(value);
  return negative ? -number : number;
}

// A real number of YAML 1.1: it has a point, and a sign in its exponent.
std::optional<Json> real(std::string_view text) {
  const bool negative = text.starts_with('-');
  const auto rest = text.starts_with('-') || text.starts_with('+') ? text.substr(1) : text;
  static constexpr std::string_view kInfinite[] = {".inf", ".Inf", ".INF"};
  if (is_any(rest, kInfinite)) return (negative ? -1 : 1) * std::numeric_limits<double>::infinity();
  const auto point = rest.find('.');
  if (point == rest.npos || !all_of(rest.substr(0, point), "_0123456789") || rest.starts_with('_'))
    return std::nullopt;
  auto fraction = rest.substr(point + 1);
  const auto power = fraction.find_first_of("eE");
  if (power != fraction.npos) {
    const auto digits = fraction.substr(power + 1);
    const bool fits =
        digits.size() > 1 && (digits[0] == '+' || digits[0] == '-') && all_of(digits.substr(1), "0123456789");
    if (!fits) return std::nullopt;
    fraction = fraction.substr(0, power);
  }
  if (!all_of(fraction, "_0123456789") || (point == 0 && fraction.empty())) return std::nullopt;
  std::string plain = without_underscores(rest);
  const auto sign = plain.find("e+") != plain.npos ? plain.find("e+") : plain.find("E+");
  if (sign != plain.npos) plain.erase(sign + 1, 1);
  const auto number = base::parse_number(plain.starts_with('.') ? "0" + plain : plain);
  return number ? std::optional<Json>(negative ? -*number : *number) : std::nullopt;
}

Json scalar(const YamlValue& value) {
  if (value.quoted) return value.text;
  static constexpr std::string_view kTrue[] = {"yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"};
  static constexpr std::string_view kFalse[] = {"no",    "No",  "NO",  "false", "False",
                                                "FALSE", "off", "Off", "OFF"};
  if (is_any(value.text, kTrue)) return true;
  if (is_any(value.text, kFalse)) return false;
  if (auto number = whole(value.text)) return *number;
  if (auto number = real(value.text)) return *number;
  return value.text;
}

std::vector<std::string> texts_of(const YamlValue& value) {
  if (value.kind == YamlValue::Kind::scalar) return {value.text};
  std::vector<std::string> texts;
  for (const auto& item : value.items) texts.push_back(item.text);
  base::require<base::UsageError>(value.kind == YamlValue::Kind::list, value.place,
                                  ": include: expected a file or a list of files.");
  return texts;
}

void set_entry(YamlValue& map, const io::YamlEntry& entry) {
  if (auto* there = map.find(entry.key))
    *there = entry.value;
  else
    map.entries.push_back(entry);
}

class Includer {
 public:
  YamlValue read(const base::Path& file) {
    const auto path = std::filesystem::weakly_canonical(file);
    base::require<base::UsageError>(std::find(seen_.begin(), seen_.end(), path) == seen_.end(), file.string(),
                                    ": is included by itself, or twice; include it once.");
    base::require<base::UsageError>(seen_.size() < kMostFiles, file.string(), ": more than ", kMostFiles,
                                    " files include each other.");
    seen_.push_back(path);
    const auto root = io::parse_yaml(text_of(file), file.string());
    base::require<base::UsageError>(root.kind == YamlValue::Kind::map, file.string(),
                                    ": is no map of keys, so no task; see docs/tasks.md.");
    const auto* include = root.find("include");
    if (include == nullptr) return root;
    YamlValue merged = root;
    merged.entries.clear();
    for (const auto& name : texts_of(*include))
      for (const auto& entry : read(file.parent_path() / name).entries) set_entry(merged, entry);
    for (const auto& entry : root.entries)
      if (entry.key != "include") set_entry(merged, entry);
    return merged;
  }

 private:
  static std::string text_of(const base::Path& file) {
    try {
      return base::read_file(file, io::kMaxYamlBytes);
    } catch (const base::DataError& fault) {
      throw base::UsageError(fault.what());
    }
  }

  std::vector<base::Path> seen_;
};

}  // namespace

Json resolved(const YamlValue& value) {
  switch (value.kind) {
    case YamlValue::Kind::null:
      return nullptr;
    case YamlValue::Kind::scalar:
      return scalar(value);
    case YamlValue::Kind::list: {
      Json list = Json::array();
      for (const auto& item : value.items) list.push_back(resolved(item));
      return list;
    }
    case YamlValue::Kind::map: {
      Json map = Json::object();
      for (const auto& [key, item] : value.entries) map[key] = resolved(item);
      return map;
    }
  }
  return nullptr;
}

YamlValue read_task_map(const base::Path& file) {
  return Includer().read(file);
}

void Mistakes::refuse(const std::string& file) const {
  if (found_.empty()) return;
  if (found_.size() == 1) throw base::UsageError(found_.front());
  std::string text = base::join(file, ": ", found_.size(), " mistakes");
  for (const auto& one : found_) text += "\n  " + one;
  throw base::UsageError(text);
}

void require_known(const YamlValue& map, const std::vector<std::string>& known, Mistakes& mistakes) {
  for (const auto& [key, value] : map.entries) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    const auto near = base::nearest(key, known);
    mistakes.add(value, "there is no key " + io::quote(key) +
                            (near.empty() ? "" : "; did you mean " + io::quote(near) + "?"));
  }
}

}  // namespace retort::tasks
