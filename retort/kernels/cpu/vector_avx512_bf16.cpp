// What the vectors of AVX-512 BF16 multiply by pairs.
#include <immintrin.h>

#include <bit>
#include <cstring>
#include <utility>

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

constexpr std::int64_t kElements = 32;  // of a vector

// Of the first `count` elements, at most a vector; the others are zero and are not read.
__m512bh first_of(const Bf16* p, std::int64_t count) {
  return pairs(_mm512_maskz_loadu_epi16(static_cast<__mmask32>((std::uint64_t{1} << count) - 1), p));
}

__m512bh vector_of(const Bf16* p) {
  return pairs(_mm512_loadu_si512(p));
}

// Halves are added to halves.
template <int kHalf, int... kLane>
float sum_of(__m512 v, std::integer_sequence<int, kLane...> lanes) {
  v += __builtin_shufflevector(v, v, ((kLane + kHalf) % 16)...);
  if constexpr (kHalf == 1)
    return v[0];
  else
    return sum_of<kHalf / 2>(v, lanes);
}

// Weights are asked for a page ahead: the processor itself begins anew at each page.  They go to the second
// cache, which waits for more lines at once than the first.
void ask_ahead(const void* weights) {
  constexpr std::int64_t kPage = 4096;
  constexpr int kForReading = 0, kToSecondCache = 2;
  __builtin_prefetch(static_cast<const std::byte*>(weights) + kPage, kForReading, kToSecondCache);
}

float dot(const Bf16* w, const Bf16* x, std::int64_t count) {
  __m512 even = _mm512_setzero_ps(), odd = _mm512_setzero_ps();
  std::int64_t i = 0;
  for (; i + 2 * kElements <= count; i += 2 * kElements) {
    ask_ahead(w + i);
    ask_ahead(w + i + kElements);
    even = _mm512_dpbf16_ps(even, vector_of(w + i), vector_of(x + i));
    odd = _mm512_dpbf16_ps(odd, vector_of(w + i + kElements), vector_of(x + i + kElements));
  }
  for (; i < count; i += kElements) {
    const auto left = count - i < kElements ? count - i : kElements;
    even = _mm512_dpbf16_ps(even, first_of(w + i, left), first_of(x + i, left));
  }
  return sum_of<8>(even + odd, std::make_integer_sequence<int, 16>());
}

void matrix_vector(const Bf16* w_MK, const Bf16* x_K, std::int64_t rows, std::int64_t dim, float* y_M) {
  for (std::int64_t m = 0; m < rows; ++m) y_M[m] = dot(w_MK + m * dim, x_K, dim);
}

// The bytes of a group's pairs.
struct PairBytes {
  alignas(32) std::uint8_t of[32] = {};
  constexpr PairBytes() {
    for (std::size_t byte = 0; byte < 32; ++byte)
      of[byte] = static_cast<std::uint8_t>(2 * kTwoFourPairs[byte / 4][byte / 2 % 2] + byte % 2);
  }
};

void pairs_of_groups(const Bf16* x, std::int64_t groups, std::uint32_t* out) {
  static constexpr PairBytes bytes;
  const auto order = _mm256_load_si256(reinterpret_cast<const __m256i*>(bytes.of));
  for (std::int64_t g = 0; g < groups; ++g) {
    std::int64_t group;
    std::memcpy(&group, x + kTwoFourGroupInputs * g, sizeof group);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + kTwoFourPairSlots * g),
                        _mm256_shuffle_epi8(_mm256_set1_epi64x(group), order));
  }
}

// A word of choices finds the pair of x that a word of weights is multiplied by; then the next four bits.
void two_four(const TwoFourProduct<std::uint32_t>& of, float* y_M) {
  constexpr std::int64_t kSteps = kTwoFourPieceGroups / 2, kSums = 4, kLine = 64;
  constexpr __mmask16 kAll = 0xffff;
  const auto* from = of.tiles;
  for (std::int64_t tile = 0; tile < of.count; ++tile, y_M += kTwoFourTileRows) {
    __m512 sums[kSums] = {};
    const auto* x = of.x;
    for (std::int64_t piece = 0; piece < of.pieces; ++piece, from += two_four_piece_bytes(sizeof(Bf16))) {
      auto choices = _mm512_loadu_si512(from);
      ask_ahead(from);
      for (std::int64_t step = 0; step < kSteps; ++step, x += 2 * kTwoFourPairSlots) {
        const auto* weights = from + kTwoFourWeightsAt + step * kLine;
        ask_ahead(weights);
        const auto chosen = _mm512_maskz_permutexvar_epi32(kAll, choices, _mm512_loadu_si512(x));
        sums[step % kSums] =
            _mm512_dpbf16_ps(sums[step % kSums], pairs(_mm512_loadu_si512(weights)), pairs(chosen));
        choices = _mm512_maskz_srli_epi32(kAll, choices, 4);
      }
    }
    const auto sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    for (int r = 0; r < kTwoFourTileRows; ++r) y_M[r] = sum[r] + sum[kTwoFourTileRows + r];
  }
}

}  // namespace

const PairKernels& pair_kernels() {
  static constexpr PairKernels kernels{product, matrix_vector, pairs_of_groups, two_four};
  return kernels;
}

}  // namespace retort::kernels::avx512
