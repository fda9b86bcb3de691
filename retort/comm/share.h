#pragma once
// How ranks share things that lie beside each other.

#include <cstddef>

namespace retort::comm {

/// From `first` up to, without it, `last`.
struct Share {
  std::size_t first = 0, last = 0;
};

/// What `rank` of `ranks` takes of `count` things, as evenly as they divide.
constexpr Share share_of(std::size_t count, int rank, int ranks) {
  const auto part = static_cast<std::size_t>(rank), parts = static_cast<std::size_t>(ranks);
  return {count * part / parts, count * (part + 1) / parts};
}

}  // namespace retort::comm
