// The transpose of a square of words in vectors; included in a namespace for each instruction set.  No
// #pragma once.

// Two vectors exchange the lanes of one in which bit kBit is set with those of the other in which it is not.
template <std::size_t kBit, typename Row, std::size_t... kLane>
inline void exchange(Row& a, Row& b, std::index_sequence<kLane...>) {
  constexpr std::size_t kAll = sizeof...(kLane);
  const Row low = __builtin_shufflevector(a, b, ((kLane & kBit) != 0 ? kAll + kLane - kBit : kLane)...);
  const Row high = __builtin_shufflevector(a, b, ((kLane & kBit) != 0 ? kAll + kLane : kLane + kBit)...);
  a = low;
  b = high;
}

// As many vectors as each has words.
template <std::size_t kCount, std::size_t kBit = 1, typename Row>
inline void transpose(Row* rows) {
  if constexpr (kBit < kCount) {
    for (std::size_t r = 0; r < kCount; ++r)
      if ((r & kBit) == 0) exchange<kBit>(rows[r], rows[r + kBit], std::make_index_sequence<kCount>{});
    transpose<kCount, 2 * kBit>(rows);
  }
}
