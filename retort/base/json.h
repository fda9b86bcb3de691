#pragma once
// JSON from strangers: size and depth are capped, duplicate keys and invalid UTF-8 are refused.

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
};

/// Why a text is not acceptable JSON; `byte` counts from 0.
struct JsonFault {
  std::string reason;
  std::size_t byte = 0;
};

/// Parses strictly; throws JsonFault (callers turn it into their own error with file and place).
Json parse_json(std::string_view text, const JsonLimits& limits = {});

}  // namespace retort::base
