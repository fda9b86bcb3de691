#pragma once
// Data of unicode_tables.cpp, which tools/make_unicode_tables.py writes.

#include <cstddef>
#include <cstdint>

namespace retort::text {

struct ClassRange {
  std::uint32_t first;
  std::uint32_t last;
  std::uint16_t value;
};

/// Full canonical decomposition; unused places are 0.
struct Decomposition {
  std::uint32_t code;
  std::uint32_t parts[4];
};

struct Composition {
  std::uint32_t first;
  std::uint32_t second;
  std::uint32_t composed;
};

extern const ClassRange kClassRanges[];
extern const std::size_t kClassRangeCount;
extern const Decomposition kDecompositions[];
extern const std::size_t kDecompositionCount;
extern const Composition kCompositions[];
extern const std::size_t kCompositionCount;
extern const ClassRange kCombiningRanges[];
extern const std::size_t kCombiningRangeCount;

}  // namespace retort::text
