// One vector times rows of 2:4 weights.  Part of vector_kernels_impl.h, which includes it in its namespace
// once per instruction set.  No #pragma once.

#if defined(__AVX2__)
// Of each group of four lanes of x, which are four neighbouring inputs, those that the low two bits name.
inline Vector<float> chosen(const Vector<float>& x, const Vector<std::uint32_t>& choices) {
#if defined(__AVX512F__)
  return _mm512_maskz_permutevar_ps(0xffff, x, __builtin_bit_cast(__m512i, choices));
#else
  return _mm256_permutevar_ps(x, __builtin_bit_cast(__m256i, choices));
#endif
}

// Four inputs in every group of lanes.
inline Vector<float> repeated(const float* x) {
#if defined(__AVX512F__)
  return _mm512_maskz_broadcast_f32x4(0xffff, _mm_loadu_ps(x));
#else
  return _mm256_broadcast_ps(reinterpret_cast<const __m128*>(x));
#endif
}

inline Vector<float> widened_at(const float* p) {
  return vector_at(p);
}
inline Vector<float> widened_at(const Bf16* p) {
#if defined(__AVX512F__)
  const auto words =
      _mm512_maskz_cvtepu16_epi32(0xffff, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
#else
  const auto words = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
#endif
  return __builtin_bit_cast(Vector<float>, __builtin_bit_cast(Vector<std::uint32_t>, words) << 16);
}

// Adds what a piece gives in the lanes of one vector.  Two sums for each lane: an addition waits for the last
// one to its sum.
template <typename T>
inline void add_piece(const std::byte* piece, int lane, const float* x, Two<float>& sums) {
  const auto* words = reinterpret_cast<const std::uint32_t*>(piece) + lane;
  const T* weights = reinterpret_cast<const T*>(piece + kTwoFourWeightsAt) + lane;
  Vector<std::uint32_t> choices = vector_at(words);
  Vector<float> even = sums.first, odd = sums.second;
  for (int group = 0; group < kTwoFourPieceGroups;
       group += 2, x += 2 * kTwoFourGroupInputs, weights += 4 * kTwoFourTileRows) {
    even += widened_at(weights) * chosen(repeated(x), choices);
    choices >>= 2;
    odd += widened_at(weights + 2 * kTwoFourTileRows) * chosen(repeated(x + kTwoFourGroupInputs), choices);
    choices >>= 2;
  }
  sums = {even, odd};
}

// Weights are asked for a page ahead.
template <typename T>
void two_four(const TwoFourProduct<float>& of, float* y_M) {
  constexpr int kCount = VectorOf<float>::kCount, kLine = 64, kAhead = 4096;
  constexpr auto kBytes = two_four_piece_bytes(sizeof(T));
  const auto* from = of.tiles;
  for (std::int64_t tile = 0; tile < of.count; ++tile, y_M += kTwoFourTileRows) {
    Two<float> sums[kTwoFourWords / kCount] = {};
    const float* x = of.x;
    for (std::int64_t piece = 0; piece < of.pieces; ++piece, from += kBytes, x += kTwoFourPieceInputs) {
      for (std::int64_t line = 0; line < kBytes; line += kLine) __builtin_prefetch(from + kAhead + line);
      for (int lane = 0; lane < kTwoFourWords; lane += kCount)
        add_piece<T>(from, lane, x, sums[lane / kCount]);
    }
    float each[kTwoFourWords];
    for (int lane = 0; lane < kTwoFourWords; lane += kCount) {
      const Vector<float> sum = sums[lane / kCount].first + sums[lane / kCount].second;
      std::memcpy(each + lane, &sum, sizeof sum);
    }
    for (std::int64_t r = 0; r < kTwoFourTileRows; ++r) y_M[r] = each[2 * r] + each[2 * r + 1];
  }
}
#endif

template <typename T>
constexpr auto two_four_of() -> decltype(VectorKernels<T>::two_four) {
#if defined(__AVX2__)
  if constexpr (!std::is_same_v<T, double>) return two_four<T>;
#endif
  return nullptr;
}
