#pragma once
// Typed access to the keys of an object of config.json.

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "retort/base/error.h"
#include "retort/base/json.h"
#include "retort/io/quote.h"

namespace retort::architecture {

using io::shown;

/// Null and absent are the same, as they are for transformers.
class JsonReader {
 public:
  JsonReader(const base::Json& json, std::string where) : json_(json), where_(std::move(where)) {}

  const base::Json* find(const char* key) const {
    const auto found = json_.find(key);
    return found == json_.end() || found->is_null() ? nullptr : &*found;
  }
  bool present(const char* key) const { return json_.contains(key); }

  std::int64_t integer(const base::Json& value, const char* key) const {
    const bool fits = value.is_number_integer() &&
                      (!value.is_number_unsigned() ||
                       value.get<std::uint64_t>() <= std::uint64_t{std::numeric_limits<std::int64_t>::max()});
    require_kind(fits, value, key, "a whole number");
    return value.get<std::int64_t>();
  }
  double number(const base::Json& value, const char* key) const {
    require_kind(value.is_number(), value, key, "a number");
    return value.get<double>();
  }
  bool flag(const base::Json& value, const char* key) const {
    require_kind(value.is_boolean(), value, key, "true or false");
    return value.get<bool>();
  }
  std::string text(const base::Json& value, const char* key) const {
    require_kind(value.is_string(), value, key, "a name");
    return value.get<std::string>();
  }
  std::optional<double> optional_number(const char* key) const {
    const base::Json* value = find(key);
    return value == nullptr ? std::nullopt : std::optional(number(*value, key));
  }
  std::string text_or_empty(const char* key) const {
    const base::Json* value = find(key);
    return value == nullptr ? "" : text(*value, key);
  }
  /// Throws ModelError unless `ok`.
  void require_kind(bool ok, const base::Json& value, const char* key, const char* expected) const {
    base::require<base::ModelError>(ok, where_, ": ", key, " is ", shown(value), ", expected ", expected,
                                    ".");
  }
  /// What a refusal says: the key, its value, why, and what to do.
  [[noreturn]] void refuse(std::string_view key, const base::Json& value, std::string_view reason,
                           std::string_view remedy = "") const {
    throw base::ModelError(base::join(where_, ": ", key, " is ", shown(value), ": ", reason,
                                      ", which is not supported and would change what the model computes",
                                      remedy, "."));
  }
  const std::string& where() const { return where_; }
  const base::Json& json() const { return json_; }

 private:
  const base::Json& json_;
  std::string where_;
};

}  // namespace retort::architecture
