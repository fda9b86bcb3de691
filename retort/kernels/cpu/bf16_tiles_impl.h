// What a matrix unit for bfloat16 needs around its products: operands in pairs of rows, and the softmax of
// attention between two products.  Part of vector_kernels_impl.h, which includes it in its namespace once per
// instruction set.  No #pragma once.
//
// A matrix in pairs has a word of 32 bits for elements (2i, j) and (2i + 1, j), the former in its lower half.

#include "retort/kernels/cpu/transpose_impl.h"

using Words = Vector<std::uint32_t>;
typedef std::uint16_t Halves __attribute__((vector_size(kVectorBytes / 2)));

// Neighbours stay neighbours.
inline void narrow_at(Bf16* p, const Vector<float>& v) {
  const auto halves = __builtin_convertvector(rounded_words(v) >> 16, Halves);
  std::memcpy(p, &halves, sizeof halves);
}

struct Bf16Tiles {
  static constexpr std::int64_t kCount = VectorOf<float>::kCount;

  // `rows` rows that lie `stride` apart, as pairs of rows; zeros up to `padded_rows`.
  static void pairs_of_rows(const Bf16* x, std::int64_t stride, std::int64_t rows, std::int64_t columns,
                            std::int64_t padded_rows, std::uint32_t* out) {
    for (std::int64_t n = 0; n < padded_rows; n += 2, out += columns) {
      const Bf16 *even = x + n * stride, *odd = even + stride;
      if (n + 1 < rows)
        for (std::int64_t i = 0; i < columns; ++i) out[i] = even[i].bits | std::uint32_t{odd[i].bits} << 16;
      else
        for (std::int64_t i = 0; i < columns; ++i) out[i] = n < rows ? even[i].bits : 0;
    }
  }

  // The transpose of such rows in pairs; zeros up to `padded_rows` in each of its rows, which lie
  // `out_stride` words apart.
  static void pairs_of_columns(const Bf16* x, std::int64_t stride, std::int64_t rows, std::int64_t columns,
                               std::int64_t padded_rows, std::int64_t out_stride, std::uint32_t* out) {
    const std::int64_t words = columns / 2, whole_rows = rows / kCount * kCount,
                       whole_words = words / kCount * kCount;
    for (std::int64_t n = 0; n < whole_rows; n += kCount)
      for (std::int64_t i = 0; i < whole_words; i += kCount) {
        Words square[kCount];
        for (std::int64_t m = 0; m < kCount; ++m)
          std::memcpy(&square[m], x + (n + m) * stride + 2 * i, sizeof square[m]);
        transpose<kCount>(square);
        for (std::int64_t m = 0; m < kCount; ++m)
          std::memcpy(out + (i + m) * out_stride + n, &square[m], sizeof square[m]);
      }
    const auto one_by_one = [&](std::int64_t first_row, std::int64_t first_word) {
      for (std::int64_t i = first_word; i < words; ++i)
        for (std::int64_t n = first_row; n < rows; ++n)
          std::memcpy(out + i * out_stride + n, x + n * stride + 2 * i, sizeof *out);
    };
    one_by_one(whole_rows, 0);
    one_by_one(0, whole_words);
    for (std::int64_t i = 0; i < words; ++i)
      for (std::int64_t n = rows; n < padded_rows; ++n) out[i * out_stride + n] = 0;
  }

  // From a transpose in pairs the transpose itself.
  static void unpaired(const std::uint32_t* pairs, std::int64_t stride, std::int64_t pair_rows,
                       std::int64_t columns, Bf16* out) {
    for (std::int64_t i = 0; i < pair_rows; ++i) {
      const std::uint32_t* words = pairs + i * stride;
      Bf16 *even = out + 2 * i * stride, *odd = even + stride;
      for (std::int64_t n = 0; n < columns; ++n) even[n].bits = static_cast<std::uint16_t>(words[n]);
      for (std::int64_t n = 0; n < columns; ++n) odd[n].bits = static_cast<std::uint16_t>(words[n] >> 16);
    }
  }

  // Of a tile with transposed scores, [keys, rows]: the first and the last row of queries that see key m.
  struct Seen {
    std::int64_t first, last;
  };
  static Seen seen_by(const TransposedTile& t, const Scores& of, std::int64_t m) {
    const auto within = [&](std::int64_t r) { return r < 0 ? 0 : r < t.rows ? r : t.rows; };
    const std::int64_t diagonal = t.first_key + m - t.first_row;
    return {within(diagonal), of.window > 0 ? within(diagonal + of.window) : t.rows};
  }

  // One vector of queries against a key.
  struct Gradients {
    Vector<float> probability, score;
  };
  static Gradients of_scores(const Vector<float>& s, const Vector<float>& g, const Vector<float>& lse,
                             const Vector<float>& delta, const Scores& of) {
    const float factor = float(of.scale), cap = float(of.softcap);
    if (cap == 0) {
      const auto p = exponentials(s * factor - lse);
      return {p, p * (g - delta) * factor};
    }
    const auto e = exponentials(s * (2 * factor / cap));
    const Vector<float> bent = 1.0f - 2.0f / (1.0f + e), p = exponentials(cap * bent - lse);
    return {p, p * (g - delta) * factor * (1.0f - bent * bent)};
  }

  static void attention_gradients(const TransposedTile& t, const Scores& of, Bf16* p_MR, Bf16* gradients_MR) {
    for (std::int64_t m = 0; m < t.padded_keys; ++m) {
      const auto [first, last] = m < t.keys ? seen_by(t, of, m) : Seen{0, 0};
      for (std::int64_t r = 0; r < t.padded_rows; r += kCount) {
        const std::int64_t at = m * t.stride + r;
        Gradients g{};
        if (r + kCount > first && r < last)
          g = of_scores(vector_at(t.scores_MR + at), vector_at(t.gradients_MR + at), vector_at(t.lse_R + r),
                        vector_at(t.delta_R + r), of);
        if (r < first || r + kCount > last)  // the diagonal or an edge runs through it
          for (int l = 0; l < kCount; ++l)
            if (r + l < first || r + l >= last) g.probability[l] = g.score[l] = 0;
        narrow_at(p_MR + at, g.probability);
        narrow_at(gradients_MR + at, g.score);
      }
    }
  }

  static void narrow_rows(const float* x, std::int64_t stride, std::int64_t rows, std::int64_t columns,
                          Bf16* out) {
    for (std::int64_t n = 0; n < rows; ++n)
      for (std::int64_t i = 0; i < columns; i += kCount)
        narrow_at(out + n * stride + i, vector_at(x + n * stride + i));
  }

  static void dots(const Bf16* a, std::int64_t a_stride, const Bf16* b, std::int64_t b_stride,
                   std::int64_t rows, std::int64_t columns, float* out) {
    for (std::int64_t n = 0; n < rows; ++n) {
      Two<float> sum = {};
      for (std::int64_t i = 0; i < columns; i += 2 * kCount) {
        const auto x = two_at(a + n * a_stride + i), y = two_at(b + n * b_stride + i);
        sum.first += x.first * y.first;
        sum.second += x.second * y.second;
      }
      out[n] = sum_of<float>(sum.first + sum.second);
    }
  }

  static const Bf16TileKernels& table() {
    static const Bf16TileKernels kTable{pairs_of_rows, pairs_of_columns,    unpaired,
                                        narrow_rows,   attention_gradients, dots};
    return kTable;
  }
};
