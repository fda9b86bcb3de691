#pragma once
// How matrices are divided for threads and caches.

#include <algorithm>
#include <cstdint>

namespace retort::kernels::cpu {

struct Range {
  std::int64_t begin, end;
  std::int64_t size() const { return end - begin; }
};

/// The quotient, rounded up.
constexpr std::int64_t ceil_div(std::int64_t size, std::int64_t by) {
  return (size + by - 1) / by;
}

/// The size of `count` parts of whole tiles that make up `size`, as even as these allow.
constexpr std::int64_t part_size(std::int64_t size, std::int64_t count, std::int64_t tile) {
  return ceil_div(ceil_div(size, count), tile) * tile;
}

/// Copies so many rows and columns; the rows of both lie apart by elements.
template <typename T>
void copy_part(const T* from, std::int64_t from_row, T* to, std::int64_t to_row, std::int64_t rows,
               std::int64_t columns) {
  for (std::int64_t r = 0; r < rows; ++r) std::copy_n(from + r * from_row, columns, to + r * to_row);
}

}  // namespace retort::kernels::cpu
