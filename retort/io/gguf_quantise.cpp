// Every product is rounded before the sum, as NumPy does: CMakeLists.txt keeps the compiler from fusing them.
#include "retort/io/gguf_quantise.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

#include "retort/base/error.h"
#include "retort/io/gguf_quantise_k.h"

namespace retort::io {
namespace {

using Out = std::uint8_t*;

constexpr std::uint32_t kInfinite = 0x7F800000U;  // as bits

std::uint32_t magnitude_bits(float value) {
  return std::bit_cast<std::uint32_t>(value) & 0x7FFFFFFFU;
}

void put_word(Out out, std::uint16_t word) {
  out[0] = static_cast<std::uint8_t>(word & 255);
  out[1] = static_cast<std::uint8_t>(word >> 8);
}
void put_word32(Out out, std::uint32_t word) {
  put_word(out, static_cast<std::uint16_t>(word & 0xFFFFU));
  put_word(out + 2, static_cast<std::uint16_t>(word >> 16));
}

// False where the value is too large for a half.
bool put_half(Out out, float value) {
  const std::uint16_t half = float_to_half(value);
  put_word(out, half);
  return (half & 0x7C00) != 0x7C00;
}

bool write_f32(const float* in, Out out) {
  put_word32(out, std::bit_cast<std::uint32_t>(*in));
  return true;
}

bool write_f16(const float* in, Out out) {
  return put_half(out, *in);
}

// The nearest, of two the even one.
bool write_bf16(const float* in, Out out) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(*in);
  put_word(out, static_cast<std::uint16_t>((bits + 0x7FFFU + (bits >> 16 & 1U)) >> 16));
  return magnitude_bits(*in) < 0x7F7F8000U;
}

float inverse(float scale) {
  return scale == 0.0F ? 0.0F : 1.0F / scale;
}

// A value in steps, without its fraction.  Where all values are so small that one over their scale is
// infinite, the reference has zeros on x86.
int whole(float steps) {
  return steps >= 0.0F && steps < 256.0F ? static_cast<int>(steps) : 0;
}

using Quants = std::array<std::uint8_t, 32>;

// Low and high half of byte i are values i and i + 16.
void put_nibbles(Out out, const Quants& quants) {
  for (std::size_t i = 0; i < 16; ++i)
    out[i] = static_cast<std::uint8_t>((quants[i] & 15) | (quants[i + 16] & 15) << 4);
}

void put_fifth_bits(Out out, const Quants& quants) {
  std::uint32_t bits = 0;
  for (std::size_t i = 0; i < 32; ++i) bits |= static_cast<std::uint32_t>(quants[i] >> 4) << i;
  put_word32(out, bits);
}

// Of types with a scale alone: the value of largest magnitude, the first of several, is the least quant.
struct Symmetric {
  float scale;
  Quants quants;
};

template <int kHalf>
Symmetric symmetric(const float* in) {
  float largest = in[0];
  for (std::size_t i = 1; i < 32; ++i)
    if (std::abs(in[i]) > std::abs(largest)) largest = in[i];
  Symmetric made{largest / -float{kHalf}, {}};
  const float steps = inverse(made.scale);
  for (std::size_t i = 0; i < 32; ++i) {
    const int quant = whole(in[i] * steps + (float{kHalf} + 0.5F));
    made.quants[i] = static_cast<std::uint8_t>(std::min(quant, 2 * kHalf - 1));
  }
  return made;
}

bool write_q4_0(const float* in, Out out) {
  const auto [scale, quants] = symmetric<8>(in);
  put_nibbles(out + 2, quants);
  return put_half(out, scale);
}

bool write_q5_0(const float* in, Out out) {
  const auto [scale, quants] = symmetric<16>(in);
  put_fifth_bits(out + 2, quants);
  put_nibbles(out + 6, quants);
  return put_half(out, scale);
}

// Of types with a scale and the least value.
struct FromLeast {
  float scale, least;
  Quants quants;
};

template <int kMost>
FromLeast from_least(const float* in) {
  float least = in[0], largest = in[0];
  for (std::size_t i = 1; i < 32; ++i) {
    if (in[i] < least) least = in[i];
    if (in[i] > largest) largest = in[i];
  }
  FromLeast made{(largest - least) / float{kMost}, least, {}};
  const float steps = inverse(made.scale);
  for (std::size_t i = 0; i < 32; ++i) {
    const int quant = whole((in[i] - least) * steps + 0.5F);
    made.quants[i] = static_cast<std::uint8_t>(std::min(quant, kMost));
  }
  return made;
}

bool write_q4_1(const float* in, Out out) {
  const auto [scale, least, quants] = from_least<15>(in);
  put_nibbles(out + 4, quants);
  const bool fits = put_half(out, scale);
  return put_half(out + 2, least) && fits;
}

bool write_q5_1(const float* in, Out out) {
  const auto [scale, least, quants] = from_least<31>(in);
  put_fifth_bits(out + 4, quants);
  put_nibbles(out + 8, quants);
  const bool fits = put_half(out, scale);
  return put_half(out + 2, least) && fits;
}

bool write_q8_0(const float* in, Out out) {
  float largest = 0;
  for (std::size_t i = 0; i < 32; ++i) largest = std::max(largest, std::abs(in[i]));
  const float scale = largest / 127.0F, steps = inverse(scale);
  for (std::size_t i = 0; i < 32; ++i) {
    const float value = in[i] * steps, size = std::abs(value);
    const int floor = whole(size);
    // Halves go away from zero.
    const int quant = floor + whole(2.0F * (size - static_cast<float>(floor)));
    out[2 + i] = static_cast<std::uint8_t>(value < 0.0F ? -quant : quant);
  }
  return put_half(out, scale);
}

using WriteBlock = bool (*)(const float*, Out);

WriteBlock writer_of(GgmlType type) {
  switch (type) {
    case GgmlType::f32:
      return write_f32;
    case GgmlType::f16:
      return write_f16;
    case GgmlType::bf16:
      return write_bf16;
    case GgmlType::q4_0:
      return write_q4_0;
    case GgmlType::q4_1:
      return write_q4_1;
    case GgmlType::q5_0:
      return write_q5_0;
    case GgmlType::q5_1:
      return write_q5_1;
    case GgmlType::q8_0:
      return write_q8_0;
    case GgmlType::q4_k:
      return write_q4_k;
    case GgmlType::q5_k:
      return write_q5_k;
    case GgmlType::q6_k:
      return write_q6_k;
    case GgmlType::q2_k:
    case GgmlType::q3_k:
      break;
  }
  throw base::UsageError(base::join("blocks of ", name(type),
                                    " are read only, expected a type that is written; ",
                                    "use Q4_K or Q4_0 instead."));
}

void require_finite(GgmlType type, std::span<const float> values) {
  std::uint32_t largest = 0;
  for (const float value : values) largest = std::max(largest, magnitude_bits(value));
  if (largest < kInfinite) return;
  const auto bad = std::find_if_not(values.begin(), values.end(), [](float v) { return std::isfinite(v); });
  throw base::ModelError(base::join("value ", bad - values.begin(), " is ", *bad,
                                    ", expected a finite one for ", name(type),
                                    "; train or prune the model again."));
}

}  // namespace

void quantise(GgmlType type, std::span<const float> values, std::span<std::byte> blocks) {
  const GgmlBlock block = block_of(type);
  const WriteBlock write = writer_of(type);
  const std::size_t count = values.size() / block.values;
  base::ensure(values.size() == count * block.values && blocks.size() == count * block.bytes,
               "values are whole blocks and have a place for each");
  require_finite(type, values);
  auto* out = reinterpret_cast<Out>(blocks.data());
  for (std::size_t i = 0; i < count; ++i) {
    if (write(values.data() + i * block.values, out + i * block.bytes)) continue;
    throw base::ModelError(base::join("values from ", i * block.values, " on are too large for ", name(type),
                                      ", expected such as a half can scale; use BF16 or F32 instead."));
  }
}

}  // namespace retort::io
