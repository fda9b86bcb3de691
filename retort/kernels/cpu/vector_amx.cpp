// What AMX multiplies: squares of bfloat16 in eight registers of 16 rows of 64 bytes.
#include <immintrin.h>

#include <utility>

#include "retort/kernels/cpu/amx_kernels.h"
#include "retort/kernels/cpu/amx_multiply_impl.h"

namespace retort::kernels::amx {
namespace {

constexpr std::int64_t kSide = kAmxSide, kWordsOfSquare = kAmxWordsOfSquare;

// Eight registers of 16 rows of 64 bytes.
struct alignas(64) Configuration {
  std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
  std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

void configure() {
  static constexpr Configuration configuration;
  _tile_loadconfig(&configuration);
}

void release() {
  _tile_release();
}

struct alignas(64) Order {
  std::uint16_t of[32];
};

// Of 32 words the upper halves, in their order.
constexpr auto kUpperHalves = [] {
  Order order{};
  for (int i = 0; i < 32; ++i) order.of[i] = static_cast<std::uint16_t>(2 * i + 1);
  return order;
}();
// Of two rows of 16 elements, those of a column beside each other.
constexpr auto kColumnsTogether = [] {
  Order order{};
  for (int i = 0; i < 32; ++i) order.of[i] = static_cast<std::uint16_t>(i / 2 + i % 2 * 16);
  return order;
}();

__m512i indices(const Order& order) {
  return _mm512_load_si512(order.of);
}

__mmask16 first(std::int64_t count) {
  return static_cast<__mmask16>(count >= 16 ? 0xffff : count <= 0 ? 0 : (1 << count) - 1);
}

// Vectors of the parts of 32 elements.
template <int kCount>
struct Words {
  static constexpr int kParts = kCount;
  __m512i of[kCount];
};

// Cuts elements into so many bfloat16, and asks for elements further on in the row: rows lie too far apart
// for the processor to see where they go on.
template <typename T>
struct Split;

// x = high + middle + low, unless a part is below 2^-126.  What is not finite stays so in the last part.
template <>
struct Split<float> {
  using Parts = Words<3>;

  // The nearest bfloat16, in float32.
  static __m512 rounded(__m512 x) {
    const auto up = _mm512_add_epi32(_mm512_castps_si512(x), _mm512_set1_epi32(0x8000));
    return _mm512_castsi512_ps(_mm512_and_si512(up, _mm512_set1_epi32(static_cast<int>(0xffff0000))));
  }

  // Joins two parts of 16 elements each, and the last ones.
  template <typename Join, typename JoinLast>
  static Parts parts(__m512 a, __m512 b, Join join, JoinLast join_last) {
    Parts words;
    for (int part = 0; part + 1 < Parts::kParts; ++part) {
      const auto from_a = rounded(a), from_b = rounded(b);
      words.of[part] = join(_mm512_castps_si512(from_a), _mm512_castps_si512(from_b));
      a = _mm512_sub_ps(a, from_a);
      b = _mm512_sub_ps(b, from_b);
    }
    words.of[Parts::kParts - 1] = join_last(reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(b, a)));
    return words;
  }

  // 32 elements of a row, of which `count` are there.
  static Parts of_row(const float* x, std::int64_t count) {
    _mm_prefetch(x + 64, _MM_HINT_T0);
    _mm_prefetch(x + 80, _MM_HINT_T0);
    return parts(
        _mm512_maskz_loadu_ps(first(count), x), _mm512_maskz_loadu_ps(first(count - 16), x + 16),
        [](__m512i a, __m512i b) {
          return _mm512_maskz_permutex2var_epi16(0xffffffff, a, indices(kUpperHalves), b);
        },
        [](__m512i both) { return both; });
  }

  // Two rows of 16 elements, of which `count` are there: the words of a column have both.
  static Parts of_rows(const float* x, const float* next, std::int64_t count) {
    const auto there = first(count);
    const auto a = x ? _mm512_maskz_loadu_ps(there, x) : _mm512_setzero_ps(),
               b = next ? _mm512_maskz_loadu_ps(there, next) : _mm512_setzero_ps();
    if (next) {
      _mm_prefetch(x + 48, _MM_HINT_T0);
      _mm_prefetch(next + 48, _MM_HINT_T0);
    }
    return parts(
        a, b,
        [](__m512i even, __m512i odd) {
          return _mm512_or_si512(_mm512_maskz_srli_epi32(0xffff, even, 16), odd);
        },
        [](__m512i both) {
          return _mm512_maskz_permutexvar_epi16(0xffffffff, indices(kColumnsTogether), both);
        });
  }
};

template <>
struct Split<Bf16> {
  using Parts = Words<1>;

  static Parts of_row(const Bf16* x, std::int64_t count) {
    _mm_prefetch(x + 96, _MM_HINT_T0);
    const auto there = count >= 32 ? 0xffffffff : (std::uint32_t{1} << count) - 1;
    return {{_mm512_maskz_loadu_epi16(there, x)}};
  }

  // Words of 16 elements, of which those in `there` are.
  static __m512i words_of(const Bf16* x, __mmask16 there) {
    return x ? _mm512_maskz_cvtepu16_epi32(0xffff, _mm256_maskz_loadu_epi16(there, x))
             : _mm512_setzero_si512();
  }

  static Parts of_rows(const Bf16* x, const Bf16* next, std::int64_t count) {
    const auto there = first(count);
    if (next) {
      _mm_prefetch(x + 80, _MM_HINT_T0);
      _mm_prefetch(next + 80, _MM_HINT_T0);
    }
    const auto even = words_of(x, there), odd = words_of(next, there);
    return {{_mm512_or_si512(even, _mm512_maskz_slli_epi32(0xffff, odd, 16))}};
  }
};

#include "retort/kernels/cpu/transpose_impl.h"

void transpose_square(std::uint32_t* words) {
  using Row = std::uint32_t __attribute__((vector_size(4 * kSide)));
  Row rows[kSide];
  for (int r = 0; r < kSide; ++r) rows[r] = reinterpret_cast<Row>(_mm512_load_si512(words + r * kSide));
  transpose<kSide>(rows);
  for (int r = 0; r < kSide; ++r) _mm512_store_si512(words + r * kSide, reinterpret_cast<__m512i>(rows[r]));
}

// Cuts 16 lines of 32 inner elements each, of which the first `lines` and `inner` are there, into squares
// that lie two squares apart, one for each part.  A word has two inner elements that are neighbours.  A row
// of a square is a line where a line's elements lie together in memory, [line, word]; else it is [word,
// line]. `rest` gathers bits of all parts but the first.
template <typename T>
void cut_square(const AmxOperand<T>& of, std::int64_t lines, std::int64_t inner, std::uint32_t* out,
                __m512i& rest) {
  using Parts = typename Split<T>::Parts;
  const auto store = [&](std::int64_t row, const Parts& words) {
    for (int part = 0; part < Parts::kParts; ++part) {
      _mm512_store_si512(out + part * 2 * kWordsOfSquare + row * kSide, words.of[part]);
      if (part > 0) rest = _mm512_or_si512(rest, words.of[part]);
    }
  };
  for (std::int64_t row = 0; row < kSide; ++row)
    if (of.inner_step == 1)
      store(row, row < lines ? Split<T>::of_row(of.x + row * of.line_step, inner) : Parts{});
    else {
      const auto* x = 2 * row < inner ? of.x + 2 * row * of.inner_step : nullptr;
      store(row, Split<T>::of_rows(x, 2 * row + 1 < inner ? x + of.inner_step : nullptr, lines));
    }
}

template <typename T>
bool pack(const AmxOperand<T>& of, std::int64_t lines, std::int64_t inner, bool lines_are_columns,
          std::uint32_t* out) {
  constexpr std::int64_t kParts = Split<T>::Parts::kParts;
  const auto steps = amx_padded(inner) / kAmxInner, groups = amx_padded(lines) / kSide;
  const bool along = of.inner_step == 1;
  auto rest = _mm512_setzero_si512();
  const auto one = [&](std::int64_t group, std::int64_t step) {
    const auto line = group * kSide, n = step * kAmxInner;
    auto* const to = out + ((group / 2 * steps + step) * kParts * 2 + group % 2) * kWordsOfSquare;
    cut_square<T>({of.x + line * of.line_step + n * of.inner_step, of.line_step, of.inner_step}, lines - line,
                  inner - n, to, rest);
    if (along == lines_are_columns)
      for (std::int64_t part = 0; part < kParts; ++part) transpose_square(to + part * 2 * kWordsOfSquare);
  };
  // In the order in which they lie in memory.
  if (along) {
    for (std::int64_t group = 0; group < groups; ++group)
      for (std::int64_t step = 0; step < steps; ++step) one(group, step);
  } else {
    for (std::int64_t step = 0; step < steps; ++step)
      for (std::int64_t group = 0; group < groups; ++group) one(group, step);
  }
  return _mm512_test_epi32_mask(rest, rest) == 0;
}

// The compiler does not know what registers read; all of a product is written behind a pointer to a function,
// so that it cannot move stores past them.
struct Unit {
  static void load_a(const std::uint32_t* squares) {
    _tile_loadd(4, squares, 64);
    _tile_loadd(5, squares + kWordsOfSquare, 64);
  }
  static void load_b(const std::uint32_t* squares) {
    _tile_loadd(6, squares, 64);
    _tile_loadd(7, squares + kWordsOfSquare, 64);
  }
  static void add_products() {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }

  static void zero_sums() {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  static void load_sums(const float* sums, std::int64_t row) {
    const auto row_bytes = static_cast<std::size_t>(row) * sizeof(float);
    const auto* const lower = sums + kSide * row;
    _tile_loadd(0, sums, row_bytes);
    _tile_loadd(1, sums + kSide, row_bytes);
    _tile_loadd(2, lower, row_bytes);
    _tile_loadd(3, lower + kSide, row_bytes);
  }
  static void store_sums(float* sums, std::int64_t row) {
    const auto row_bytes = static_cast<std::size_t>(row) * sizeof(float);
    auto* const lower = sums + kSide * row;
    _tile_stored(0, sums, row_bytes);
    _tile_stored(1, sums + kSide, row_bytes);
    _tile_stored(2, lower, row_bytes);
    _tile_stored(3, lower + kSide, row_bytes);
  }
};

template <typename T>
constexpr AmxTypeKernels<T> kernels_of() {
  constexpr int kParts = Split<T>::Parts::kParts;
  return {kParts, pack<T>, multiply<Unit, kParts>};
}

}  // namespace

const AmxKernels& kernels() {
  static constexpr AmxKernels table{configure, release, kernels_of<float>(), kernels_of<Bf16>()};
  return table;
}

}  // namespace retort::kernels::amx
