// What the vectors of AVX-512 BF16 multiply by pairs.
#include <immintrin.h>

#include <bit>

#include "retort/kernels/cpu/vector_kernels.h"

namespace retort::kernels::avx512 {
namespace {

constexpr int kVectors = kPairColumns / 16;

__m512bh pairs(__m512i words) {
  return std::bit_cast<__m512bh>(words);
}

// All sums of a tile stay in registers.
template <int kRows>
void tile(const PairProduct& p) {
  __m512 sums[kRows][kVectors];
  for (int r = 0; r < kRows; ++r)
    for (int v = 0; v < kVectors; ++v) sums[r][v] = _mm512_loadu_ps(p.out + r * p.out_row + v * 16);
  const auto *a = p.a, *b = p.b;
  for (std::int64_t pair = 0; pair < p.pairs; ++pair, a += kPairRows, b += kPairColumns) {
    __m512bh shared[kVectors];
    for (int v = 0; v < kVectors; ++v) shared[v] = pairs(_mm512_loadu_si512(b + v * 16));
    for (int r = 0; r < kRows; ++r) {
      const auto factor = pairs(_mm512_set1_epi32(static_cast<int>(a[r])));
      for (int v = 0; v < kVectors; ++v) sums[r][v] = _mm512_dpbf16_ps(sums[r][v], factor, shared[v]);
    }
  }
  for (int r = 0; r < kRows; ++r)
    for (int v = 0; v < kVectors; ++v) _mm512_storeu_ps(p.out + r * p.out_row + v * 16, sums[r][v]);
}

template <int kRows>
void of_rows(const PairProduct& p) {
  if (p.rows == kRows) return tile<kRows>(p);
  if constexpr (kRows > 1) of_rows<kRows - 1>(p);
}

void product(const PairProduct& p) {
  of_rows<kPairRows>(p);
}

}  // namespace

const PairKernels& pair_kernels() {
  static constexpr PairKernels kernels{product};
  return kernels;
}

}  // namespace retort::kernels::avx512
