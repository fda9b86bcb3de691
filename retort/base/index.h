#pragma once
// Numbers as places in containers.

#include <cstddef>
#include <cstdint>

namespace retort::base {

/// `index`, which is not negative, as containers take it.
constexpr std::size_t to_size(std::int64_t index) {
  return static_cast<std::size_t>(index);
}

}  // namespace retort::base
