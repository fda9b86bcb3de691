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

// Products with matrices that are packed in panels of kPanelColumns of their rows: word k of a panel holds
// one number of each row.  A sum begins with the first input and takes one after the other, whatever rows of
// x are beside it, so a row of the result has the same bits alone and among others.
template <typename T>
struct PanelKernels {
  using C = typename ComputeOf<T>::type;
  static constexpr int kCount = VectorOf<C>::kCount, kStep = 2 * kCount;
  // As many sums as the registers hold beside what is multiplied.
  static constexpr int kRows = kVectorBytes == 64 ? 8 : 6;

  template <int kR>
  static void tile(const PanelProduct<T>& p, std::int64_t row, std::int64_t column) {
    C* const out = p.out + row * p.out_row + column;
    Two<C> sums[kR];
    for (int r = 0; r < kR; ++r) sums[r] = p.add ? two_at(out + r * p.out_row) : Two<C>{};
    const C* x = p.x + row * p.x_row;
    const T* panel = p.panel + column;
    for (std::int64_t k = 0; k < p.inner; ++k, panel += kPanelColumns) {
      const auto w = two_at(panel);
      if constexpr (kR == 1) __builtin_prefetch(panel + 4096 / sizeof(T));
      for (int r = 0; r < kR; ++r) {
        const C factor = x[r * p.x_row + k];
        sums[r].first += factor * w.first;
        sums[r].second += factor * w.second;
      }
    }
    for (int r = 0; r < kR; ++r) {
      std::memcpy(out + r * p.out_row, &sums[r].first, sizeof sums[r].first);
      std::memcpy(out + r * p.out_row + kCount, &sums[r].second, sizeof sums[r].second);
    }
  }

  template <int kR>
  static void rest(const PanelProduct<T>& p, std::int64_t row, std::int64_t column) {
    if constexpr (kR > 0) {
      if (p.rows - row == kR) return tile<kR>(p, row, column);
      rest<kR - 1>(p, row, column);
    }
  }

  static void multiply(const PanelProduct<T>& p) {
    for (std::int64_t column = 0; column < kPanelColumns; column += kStep) {
      std::int64_t row = 0;
      for (; row + kRows <= p.rows; row += kRows) tile<kRows>(p, row, column);
      rest<kRows - 1>(p, row, column);
    }
  }

  // In the order in which two_at() gives them; zeros beyond the last row.
  static void pack(const T* w_MK, std::int64_t row_elements, std::int64_t rows, std::int64_t inner,
                   T* panel) {
    for (std::int64_t column = 0; column < kPanelColumns; ++column) {
      const auto which = static_cast<int>(column / kCount % 2), lane = static_cast<int>(column % kCount);
      T* out = panel + column / kStep * kStep + place<T>(which, lane);
      for (std::int64_t k = 0; k < inner; ++k, out += kPanelColumns)
        *out = column < rows ? w_MK[column * row_elements + k] : T{};
    }
  }
};
