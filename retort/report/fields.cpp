#include "retort/report/fields.h"

#include <algorithm>
#include <cmath>

#include "retort/report/numbers.h"

namespace retort::report {

using base::Json;

const Json& entry(const Json& object, std::string_view name) {
  static const Json kNull;
  if (!object.is_object()) return kNull;
  const auto found = object.find(name);
  return found == object.end() ? kNull : *found;
}

const Json& field(const Json& object, record::Key key) {
  return entry(object, std::string_view(key));
}

std::optional<double> number(const Json& value) {
  if (!value.is_number()) return {};
  const double result = value.get<double>();
  if (!std::isfinite(result)) return {};
  return result;
}

std::optional<double> number(const Json& object, record::Key key) {
  return number(field(object, key));
}

std::optional<double> milliseconds(const base::Json& object) {
  const auto seconds = number(object, keys::kSeconds);
  return seconds ? std::optional(*seconds * 1e3) : std::nullopt;
}

std::string text(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number() || value.is_boolean()) return value.dump();
  return {};
}

std::string text(const Json& object, record::Key key) {
  return text(field(object, key));
}

std::string label_of(const base::Json& model) {
  const std::string label = text(model, keys::kLabel);
  return label.empty() ? text(model, keys::kName) : label;
}

std::string title_of_part(std::string name) {
  std::replace(name.begin(), name.end(), '_', ' ');
  return name;
}

bool is_true(const Json& object, record::Key key) {
  const Json& value = field(object, key);
  return value.is_boolean() && value.get<bool>();
}

const std::vector<Json>& elements(const Json& value) {
  static const std::vector<Json> kNone;
  return value.is_array() ? value.get_ref<const Json::array_t&>() : kNone;
}

std::string interval_of(const Json& object) {
  const auto& ends = elements(field(object, keys::kInterval));
  if (ends.size() != 2) return std::string(kMissing);
  return fixed(number(ends[0]), 4) + " to " + fixed(number(ends[1]), 4);
}

std::string standing_of(const Json& object) {
  if (is_true(object, keys::kTied)) return "tied";
  return elements(field(object, keys::kInterval)).size() == 2 ? "worse" : kMissing;
}

std::string timing_of(const Json& result) {
  const auto& conditions = field(field(result, keys::kSpeed), keys::kConditions);
  const auto dtype = text(conditions, keys::kDtype);
  return "put together from the blocks" + (dtype.empty() ? "" : ", in " + dtype);
}

std::vector<std::size_t> indices(const Json& value, std::size_t limit) {
  std::vector<std::size_t> result;
  const auto index_of = [limit](const Json& element) -> std::optional<std::size_t> {
    const auto index = number(element);
    if (!index || *index < 0 || *index >= static_cast<double>(limit)) return {};
    return static_cast<std::size_t>(*index);
  };
  for (const Json& element : elements(value)) {
    const auto& pair = elements(element);
    const auto first = index_of(pair.size() == 2 ? pair[0] : element),
               last = pair.size() == 2 ? index_of(pair[1]) : first;
    if (!first || !last) continue;
    for (auto index = *first; index <= *last && result.size() < limit; ++index) result.push_back(index);
  }
  return result;
}

}  // namespace retort::report
