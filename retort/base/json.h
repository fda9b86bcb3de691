#pragma once
// JSON from strangers: size, depth and number of values are capped, duplicate keys and invalid UTF-8 are
// refused.

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace retort::base {

/// Keeps the order of keys, so that what is written is deterministic and reads as it was meant.
using Json = nlohmann::ordered_json;

struct JsonLimits {
  std::size_t max_bytes = std::size_t{1} << 20;
  int max_depth = 64;
  std::size_t max_values = std::size_t{1}
                           << 23;  ///< of two bytes, such as [], each takes 50 or more in memory
};

/// Why a text is not acceptable JSON; `byte` counts from 0.
struct JsonFault {
  std::string reason;
  std::size_t byte = 0;
};

/// Parses strictly; throws JsonFault (callers turn it into their own error with file and place).
Json parse_json(std::string_view text, const JsonLimits& limits = {});

/// Sees what a text holds, in its order.
class JsonVisitor {
 public:
  virtual ~JsonVisitor() = default;
  /// A text, a number, true, false or null.
  virtual void scalar(Json&& value) = 0;
  /// An object or a list begins; `empty` is one.
  virtual void begin(Json&& empty) = 0;
  /// The name of the member that follows.
  virtual void key(std::string&& name) = 0;
  /// The innermost object or list ends.
  virtual void end() = 0;
};

/// As strict as parse_json, and keeps nothing but the names of the objects that are open.  Throws JsonFault,
/// and whatever `visitor` throws.
void visit_json(std::string_view text, JsonVisitor& visitor, const JsonLimits& limits = {});

}  // namespace retort::base
