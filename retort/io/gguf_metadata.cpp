#include "retort/io/gguf_metadata.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "retort/base/error.h"
#include "retort/io/quote.h"

namespace retort::io {

using base::Json;

const Json* MetadataReader::find(std::string_view key) const {
  const auto found = metadata_.find(key);
  return found == metadata_.end() ? nullptr : &found->second;
}

void MetadataReader::refuse(std::string_view key, const Json& value, const char* expected) const {
  throw base::ModelError(base::join(where_, ": metadata ", quote(key), " is ", shown(value), ", expected ",
                                    expected, "; convert the model again."));
}

std::optional<std::string> MetadataReader::text(std::string_view key) const {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) refuse(key, *value, "a text");
  return value->get<std::string>();
}

std::optional<bool> MetadataReader::flag(std::string_view key) const {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_boolean()) refuse(key, *value, "true or false");
  return value->get<bool>();
}

std::optional<double> MetadataReader::number(std::string_view key) const {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number() || !std::isfinite(value->get<double>())) refuse(key, *value, "a number");
  return value->get<double>();
}

std::optional<std::int64_t> MetadataReader::count(std::string_view key) const {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  return count_of(key, *value);
}

std::int64_t MetadataReader::count_of(std::string_view key, const Json& value) const {
  constexpr std::uint64_t kMost = std::numeric_limits<std::int32_t>::max();
  const bool whole =
      value.is_number_unsigned() || (value.is_number_integer() && value.get<std::int64_t>() >= 0);
  if (!whole || value.get<std::uint64_t>() > kMost) refuse(key, value, "a whole number from 0 to 2147483647");
  return value.get<std::int64_t>();
}

bool MetadataReader::is_list(std::string_view key) const {
  const Json* value = find(key);
  return value != nullptr && value->is_array();
}

std::vector<std::int64_t> MetadataReader::counts(std::string_view key, std::int64_t number) const {
  const Json* values = list(key, false);
  base::require<base::ModelError>(values != nullptr && std::ssize(*values) == number, where_, ": metadata ",
                                  quote(key), " has ", values ? std::ssize(*values) : 0,
                                  " numbers, expected ", number,
                                  ", one for each block; convert the model again.");
  std::vector<std::int64_t> all;
  for (const Json& value : *values) all.push_back(count_of(key, value));
  return all;
}

std::int64_t MetadataReader::required_count(std::string_view key) const {
  const auto value = count(key);
  base::require<base::ModelError>(value.has_value(), where_, ": has no metadata ", quote(key),
                                  ", expected the shape of the model; convert the model again.");
  return *value;
}

const Json* MetadataReader::list(std::string_view key, bool texts) const {
  const Json* value = find(key);
  if (value == nullptr) return nullptr;
  if (!value->is_array()) refuse(key, *value, "a list");
  const bool fits = std::all_of(value->begin(), value->end(), [texts](const Json& entry) {
    return texts ? entry.is_string() : entry.is_number();
  });
  base::require<base::ModelError>(fits, where_, ": metadata ", quote(key), " is not a list of ",
                                  texts ? "texts" : "numbers", "; convert the model again.");
  return value;
}

}  // namespace retort::io
