#pragma once
// Which keys of config.json change the mathematics, and which are known to be harmless.

#include <span>
#include <string>
#include <string_view>

#include "retort/architecture/family.h"
#include "retort/base/json.h"

namespace retort::architecture {

/// A key that no family has, and that is refused unless its value leaves the decoder as it is.
struct RefusedKey {
  const char* name;
  bool (*is_neutral)(const base::Json& value);
  std::string_view reason;
  bool of_another_model = false;  ///< says why no table can describe a model of an unknown architecture
  const char* remedy = "";        ///< what to do, as the rest of a sentence
};

std::span<const RefusedKey> refused_keys();

/// Why a model of a family cannot have this value of a key: nobody has the key, or another family.  Empty
/// where it can.
std::string why_refused(const Family& family, std::string_view key, const base::Json& value);

/// What to do about a refused key: the rest of a sentence, or nothing.
std::string_view remedy_of(std::string_view key);

/// Honoured or ignored by a family, refused unless neutral, or harmless: anything but unknown.
bool is_known_key(const Family& family, std::string_view key);

}  // namespace retort::architecture
