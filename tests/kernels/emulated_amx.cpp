#include "kernels/emulated_amx.h"

#include <c10/util/BFloat16.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "retort/kernels/cpu/amx_multiply_impl.h"

namespace retort::test {
namespace {

constexpr auto kSide = kernels::kAmxSide;
constexpr auto kLeast = std::numeric_limits<float>::min();

float without_subnormal(float x) {
  return std::fabs(x) < kLeast ? 0 : x;
}
float even_of(std::uint32_t word) {
  return without_subnormal(std::bit_cast<float>(word << 16));
}
float odd_of(std::uint32_t word) {
  return without_subnormal(std::bit_cast<float>(word & 0xffff0000));
}

// [row, word], and [row, column].
using Words = std::array<std::array<std::uint32_t, kSide>, kSide>;
using Floats = std::array<std::array<float, kSide>, kSide>;

void add_products_of(const Words& a, const Floats& evens_of_b, const Floats& odds_of_b, Floats& sums) {
  for (std::size_t row = 0; row < kSide; ++row) {
    std::array<float, kSide> evens{}, odds{};
    for (std::size_t pair = 0; pair < kSide; ++pair) {
      const auto even = even_of(a[row][pair]), odd = odd_of(a[row][pair]);
      for (std::size_t n = 0; n < kSide; ++n) {
        evens[n] += even * evens_of_b[pair][n];
        odds[n] += odd * odds_of_b[pair][n];
      }
    }
    for (std::size_t n = 0; n < kSide; ++n) {
      const auto before = without_subnormal(sums[row][n]);
      sums[row][n] = without_subnormal(before + without_subnormal(evens[n] + odds[n]));
    }
  }
}

class EmulatedUnit {
 public:
  static void load_a(const std::uint32_t* squares) { std::memcpy(a_.data(), squares, sizeof a_); }
  static void load_b(const std::uint32_t* squares) {
    std::array<Words, 2> b;
    std::memcpy(b.data(), squares, sizeof b);
    for (std::size_t square = 0; square < 2; ++square)
      for (std::size_t pair = 0; pair < kSide; ++pair)
        for (std::size_t n = 0; n < kSide; ++n) {
          evens_of_b_[square][pair][n] = even_of(b[square][pair][n]);
          odds_of_b_[square][pair][n] = odd_of(b[square][pair][n]);
        }
  }
  static void add_products() {
    for (std::size_t down = 0; down < 2; ++down)
      for (std::size_t across = 0; across < 2; ++across)
        add_products_of(a_[down], evens_of_b_[across], odds_of_b_[across], sums_[down][across]);
  }

  static void zero_sums() { sums_ = {}; }
  static void load_sums(const float* sums, std::int64_t row) {
    for_each_row(row, [&](float* own, std::int64_t place) { std::copy_n(sums + place, kSide, own); });
  }
  static void store_sums(float* sums, std::int64_t row) {
    for_each_row(row, [&](const float* own, std::int64_t place) { std::copy_n(own, kSide, sums + place); });
  }

 private:
  template <typename Body>
  static void for_each_row(std::int64_t row_step, Body body) {
    for (std::int64_t row = 0; row < kernels::kAmxLines; ++row)
      for (std::int64_t across = 0; across < 2; ++across)
        body(sums_[row / kSide][across][row % kSide].data(), row * row_step + across * kSide);
  }

  static thread_local std::array<Words, 2> a_;
  static thread_local std::array<Floats, 2> evens_of_b_, odds_of_b_;
  static thread_local std::array<std::array<Floats, 2>, 2> sums_;
};
thread_local std::array<Words, 2> EmulatedUnit::a_;
thread_local std::array<Floats, 2> EmulatedUnit::evens_of_b_, EmulatedUnit::odds_of_b_;
thread_local std::array<std::array<Floats, 2>, 2> EmulatedUnit::sums_;

// Parts of one element, each of 16 bits.
std::array<std::uint16_t, 3> parts_of(float x) {
  std::array<std::uint16_t, 3> parts;
  for (int part = 0; part < 2; ++part) {
    const auto bits = (std::bit_cast<std::uint32_t>(x) + 0x8000) & 0xffff0000;
    parts[part] = static_cast<std::uint16_t>(bits >> 16);
    x -= std::bit_cast<float>(bits);
  }
  parts[2] = c10::BFloat16(x).x;
  return parts;
}
std::array<std::uint16_t, 1> parts_of(kernels::Bf16 x) {
  return {x.bits};
}

template <typename T>
bool pack(const kernels::AmxOperand<T>& of, std::int64_t lines, std::int64_t inner, bool lines_are_columns,
          std::uint32_t* out) {
  constexpr auto kParts = static_cast<std::int64_t>(std::tuple_size_v<decltype(parts_of(T{}))>);
  const auto steps = kernels::amx_padded(inner) / kernels::kAmxInner;
  std::fill_n(out, kParts * kernels::amx_words(lines, inner), 0);
  bool in_one_part = true;
  for (std::int64_t line = 0; line < lines; ++line)
    for (std::int64_t n = 0; n < inner; ++n) {
      const auto parts = parts_of(of.x[line * of.line_step + n * of.inner_step]);
      const auto panel = (line / kernels::kAmxLines * steps + n / kernels::kAmxInner) * kParts;
      const auto row = line % kSide, word = n % kernels::kAmxInner / 2;
      for (std::int64_t part = 0; part < kParts; ++part) {
        const auto square = (panel + part) * 2 + line / kSide % 2;
        auto& to = out[square * kernels::kAmxWordsOfSquare +
                       (lines_are_columns ? word * kSide + row : row * kSide + word)];
        to |= std::uint32_t{parts[part]} << (n % 2 * 16);
        in_one_part = in_one_part && (part == 0 || parts[part] == 0);
      }
    }
  return in_one_part;
}

template <typename T, int kParts>
constexpr kernels::AmxTypeKernels<T> kernels_of() {
  return {kParts, pack<T>, kernels::amx::multiply<EmulatedUnit, kParts>};
}

}  // namespace

const kernels::AmxKernels& emulated_amx() {
  static constexpr kernels::AmxKernels kernels{[] {}, [] {}, kernels_of<float, 3>(),
                                               kernels_of<kernels::Bf16, 1>()};
  return kernels;
}

}  // namespace retort::test
