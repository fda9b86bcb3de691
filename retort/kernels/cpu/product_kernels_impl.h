// Products of matrices that stay in the cache.  Part of vector_kernels_impl.h, which includes it in its
// namespace once per instruction set.  No #pragma once.

template <typename C>
struct ProductKernels {
  static constexpr int kCount = VectorOf<C>::kCount;
  // As many sums as the registers hold beside what is multiplied.
  static constexpr int kRows = 6, kVectors = kVectorBytes == 64 ? 4 : 2;

  template <int kR, int kV>
  static void tile(const SmallProduct<C>& p, std::int64_t row, std::int64_t column) {
    C* const out = p.out + row * p.out_row + column;
    Vector<C> sums[kR][kV];
    for (int r = 0; r < kR; ++r)
      for (int v = 0; v < kV; ++v)
        sums[r][v] = p.add ? vector_at(out + r * p.out_row + v * kCount) : Vector<C>{};
    const C* a = p.a + row * p.a_row;
    const C* b = p.b + column;
    for (std::int64_t k = 0; k < p.inner; ++k, a += p.a_column, b += p.b_row) {
      Vector<C> shared[kV];
      for (int v = 0; v < kV; ++v) shared[v] = vector_at(b + v * kCount);
      for (int r = 0; r < kR; ++r) {
        const C factor = a[r * p.a_row];
        for (int v = 0; v < kV; ++v) sums[r][v] += factor * shared[v];
      }
    }
    for (int r = 0; r < kR; ++r)
      for (int v = 0; v < kV; ++v)
        std::memcpy(out + r * p.out_row + v * kCount, &sums[r][v], sizeof sums[r][v]);
  }

  template <int kR, int kV>
  static void rest(const SmallProduct<C>& p, std::int64_t row, std::int64_t column) {
    if constexpr (kR > 0) {
      if (p.rows - row == kR) return tile<kR, kV>(p, row, column);
      rest<kR - 1, kV>(p, row, column);
    }
  }

  template <int kV>
  static void all_rows(const SmallProduct<C>& p, std::int64_t column) {
    std::int64_t row = 0;
    for (; row + kRows <= p.rows; row += kRows) tile<kRows, kV>(p, row, column);
    rest<kRows - 1, kV>(p, row, column);
  }

  static void product(const SmallProduct<C>& p) {
    std::int64_t column = 0;
    for (; column + kVectors * kCount <= p.columns; column += kVectors * kCount)
      all_rows<kVectors>(p, column);
    for (; column < p.columns; column += kCount) all_rows<1>(p, column);
  }
};
