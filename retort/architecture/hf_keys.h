#pragma once
// Which keys of config.json change the mathematics, and which are known to be harmless.

#include <span>
#include <string_view>

#include "retort/architecture/family.h"
#include "retort/base/json.h"

namespace retort::architecture {

/// A key that is refused unless its value leaves the decoder as it is.
struct RefusedKey {
  const char* name;
  bool (*is_neutral)(const base::Json& value);
  std::string_view reason;
  bool of_another_model = false;  ///< says why no table can describe a model of an unknown architecture
};

std::span<const RefusedKey> refused_keys();

/// One that a family has, or that transformers ignores in it.
bool is_key_of(const Family& family, std::string_view key);

/// Honoured in every family, refused or harmless: anything but unknown.
bool is_known_key(std::string_view key);

}  // namespace retort::architecture
