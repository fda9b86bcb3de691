// Every product is rounded before the sum, as NumPy does: CMakeLists.txt keeps the compiler from fusing them.
#include "retort/io/gguf_blocks.h"

#include <algorithm>
#include <array>
#include <bit>

#include "retort/base/error.h"

namespace retort::io {
namespace {

using Bytes = const std::uint8_t*;

struct Row {
  GgmlType type;
  std::uint32_t number;
  std::string_view name;
  GgmlBlock block;
};

constexpr std::array<Row, 13> kRows{{
    {GgmlType::f32, 0, "F32", {1, 4}},
    {GgmlType::f16, 1, "F16", {1, 2}},
    {GgmlType::bf16, 30, "BF16", {1, 2}},
    {GgmlType::q4_0, 2, "Q4_0", {32, 18}},
    {GgmlType::q4_1, 3, "Q4_1", {32, 20}},
    {GgmlType::q5_0, 6, "Q5_0", {32, 22}},
    {GgmlType::q5_1, 7, "Q5_1", {32, 24}},
    {GgmlType::q8_0, 8, "Q8_0", {32, 34}},
    {GgmlType::q2_k, 10, "Q2_K", {256, 84}},
    {GgmlType::q3_k, 11, "Q3_K", {256, 110}},
    {GgmlType::q4_k, 12, "Q4_K", {256, 144}},
    {GgmlType::q5_k, 13, "Q5_K", {256, 176}},
    {GgmlType::q6_k, 14, "Q6_K", {256, 210}},
}};

struct OtherType {
  std::uint32_t number;
  std::string_view name;
};

// Types that are not read, for messages.
constexpr std::array<OtherType, 23> kOtherTypes{{
    {4, "Q4_2"},     {5, "Q4_3"},   {9, "Q8_1"},    {15, "Q8_K"},  {16, "IQ2_XXS"},  {17, "IQ2_XS"},
    {18, "IQ3_XXS"}, {19, "IQ1_S"}, {20, "IQ4_NL"}, {21, "IQ3_S"}, {22, "IQ2_S"},    {23, "IQ4_XS"},
    {24, "I8"},      {25, "I16"},   {26, "I32"},    {27, "I64"},   {28, "F64"},      {29, "IQ1_M"},
    {34, "TQ1_0"},   {35, "TQ2_0"}, {39, "MXFP4"},  {40, "NVFP4"}, {31, "Q4_0_4_4"},
}};

const Row& row(GgmlType type) {
  return kRows[static_cast<std::size_t>(type)];
}

std::uint16_t word_at(Bytes bytes) {
  return static_cast<std::uint16_t>(bytes[0] | bytes[1] << 8);
}
float half_at(Bytes bytes) {
  return half_to_float(word_at(bytes));
}
std::uint32_t word32_at(Bytes bytes) {
  return std::uint32_t{word_at(bytes)} | std::uint32_t{word_at(bytes + 2)} << 16;
}
float int_value(int value) {
  return static_cast<float>(value);
}
// A signed byte.
int signed_at(Bytes bytes) {
  return static_cast<std::int8_t>(*bytes);
}

void read_f32(Bytes in, float* out) {
  *out = std::bit_cast<float>(word32_at(in));
}
void read_f16(Bytes in, float* out) {
  *out = half_at(in);
}
void read_bf16(Bytes in, float* out) {
  *out = std::bit_cast<float>(std::uint32_t{word_at(in)} << 16);
}

// Low and high half of byte i are values i and i + 16.
int nibble(Bytes quants, std::size_t i) {
  return i < 16 ? quants[i] & 15 : quants[i - 16] >> 4;
}
// The fifth bit of value i.
int fifth_bit(std::uint32_t bits, std::size_t i) {
  return static_cast<int>(bits >> i & 1U) << 4;
}

void read_q4_0(Bytes in, float* out) {
  const float scale = half_at(in);
  for (std::size_t i = 0; i < 32; ++i) out[i] = scale * int_value(nibble(in + 2, i) - 8);
}

void read_q4_1(Bytes in, float* out) {
  const float scale = half_at(in), least = half_at(in + 2);
  for (std::size_t i = 0; i < 32; ++i) out[i] = scale * int_value(nibble(in + 4, i)) + least;
}

void read_q5_0(Bytes in, float* out) {
  const float scale = half_at(in);
  const std::uint32_t high = word32_at(in + 2);
  for (std::size_t i = 0; i < 32; ++i)
    out[i] = scale * int_value((nibble(in + 6, i) | fifth_bit(high, i)) - 16);
}

void read_q5_1(Bytes in, float* out) {
  const float scale = half_at(in), least = half_at(in + 2);
  const std::uint32_t high = word32_at(in + 4);
  for (std::size_t i = 0; i < 32; ++i)
    out[i] = scale * int_value(nibble(in + 8, i) | fifth_bit(high, i)) + least;
}

void read_q8_0(Bytes in, float* out) {
  const float scale = half_at(in);
  for (std::size_t i = 0; i < 32; ++i) out[i] = int_value(signed_at(in + 2 + i)) * scale;
}

// The 256 values of a K block go in rows of 32 bytes; each byte has a part of several values, 32 apart.
// `group` counts 16 values.
void read_q2_k(Bytes in, float* out) {
  const Bytes scales = in, quants = in + 16;
  const float scale = half_at(in + 80), least = half_at(in + 82);
  for (std::size_t i = 0; i < 256; ++i) {
    const std::size_t group = i / 16, shift = i / 32 % 4 * 2;
    const int quant = quants[i / 128 * 32 + i % 32] >> shift & 3;
    const float step = scale * int_value(scales[group] & 15);
    const float offset = least * int_value(scales[group] >> 4);
    out[i] = step * int_value(quant) - offset;
  }
}

// 16 scales of six bits: four low bits in the first eight bytes, two high bits in the last four.
int scale_of_q3_k(Bytes scales, std::size_t group) {
  const int low = scales[group % 8] >> group / 8 * 4 & 15;
  const int high = scales[8 + group % 4] >> group / 4 * 2 & 3;
  return (low | high << 4) - 32;
}

void read_q3_k(Bytes in, float* out) {
  const Bytes high = in, quants = in + 32, scales = in + 96;
  const float scale = half_at(in + 108);
  for (std::size_t i = 0; i < 256; ++i) {
    const float step = scale * int_value(scale_of_q3_k(scales, i / 16));
    const int low = quants[i / 128 * 32 + i % 32] >> i / 32 % 4 * 2 & 3;
    const bool whole = (high[i % 32] >> i / 32 & 1) != 0;  // a set bit means that nothing is taken off
    out[i] = step * int_value(low - (whole ? 0 : 4));
  }
}

struct ScaleAndMin {
  int scale, min;
};

// Eight pairs of six bits in twelve bytes: the first four plain, the others with their high bits above those.
ScaleAndMin scale_and_min(Bytes packed, std::size_t group) {
  const std::size_t i = group % 4;
  if (group < 4) return {packed[i] & 63, packed[4 + i] & 63};
  return {(packed[8 + i] & 15) | (packed[i] >> 2 & 48), packed[8 + i] >> 4 | (packed[4 + i] >> 2 & 48)};
}

void read_q4_k(Bytes in, float* out) {
  const float scale = half_at(in), least = half_at(in + 2);
  const Bytes quants = in + 16;
  for (std::size_t i = 0; i < 256; ++i) {
    const auto [steps, mins] = scale_and_min(in + 4, i / 32);
    const int quant = quants[i / 64 * 32 + i % 32] >> i / 32 % 2 * 4 & 15;
    const float step = scale * int_value(steps), offset = least * int_value(mins);
    out[i] = step * int_value(quant) - offset;
  }
}

void read_q5_k(Bytes in, float* out) {
  const float scale = half_at(in), least = half_at(in + 2);
  const Bytes high = in + 16, quants = in + 48;
  for (std::size_t i = 0; i < 256; ++i) {
    const auto [steps, mins] = scale_and_min(in + 4, i / 32);
    const int quant = (quants[i / 64 * 32 + i % 32] >> i / 32 % 2 * 4 & 15) | (high[i % 32] >> i / 32 & 1)
                                                                                  << 4;
    const float step = scale * int_value(steps), offset = least * int_value(mins);
    out[i] = step * int_value(quant) - offset;
  }
}

void read_q6_k(Bytes in, float* out) {
  const Bytes low = in, high = in + 128, scales = in + 192;
  const float scale = half_at(in + 208);
  for (std::size_t i = 0; i < 256; ++i) {
    const float step = scale * int_value(signed_at(scales + i / 16));
    const int four = low[i / 128 * 64 + i % 64] >> i / 64 % 2 * 4 & 15;
    const int two = high[i / 128 * 32 + i % 32] >> i / 32 % 4 * 2 & 3;
    out[i] = step * int_value((four | two << 4) - 32);
  }
}

using ReadBlock = void (*)(Bytes, float*);
constexpr std::array<ReadBlock, kRows.size()> kReaders{read_f32,  read_f16,  read_bf16, read_q4_0, read_q4_1,
                                                       read_q5_0, read_q5_1, read_q8_0, read_q2_k, read_q3_k,
                                                       read_q4_k, read_q5_k, read_q6_k};

}  // namespace

std::optional<GgmlType> ggml_type(std::uint32_t number) {
  for (const Row& known : kRows)
    if (known.number == number) return known.type;
  return std::nullopt;
}

std::uint32_t ggml_number(GgmlType type) {
  return row(type).number;
}

std::string ggml_name(std::uint32_t number) {
  for (const Row& known : kRows)
    if (known.number == number) return std::string(known.name);
  for (const OtherType& other : kOtherTypes)
    if (other.number == number) return std::string(other.name);
  return "type " + std::to_string(number);
}

std::string_view name(GgmlType type) {
  return row(type).name;
}
GgmlBlock block_of(GgmlType type) {
  return row(type).block;
}
bool is_quantised(GgmlType type) {
  return row(type).block.values > 1;
}

float half_to_float(std::uint16_t half) {
  const std::uint32_t sign = std::uint32_t{half} >> 15 << 31, exponent = half >> 10 & 31U,
                      fraction = half & 1023U;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7F800000U | fraction << 13);
  if (exponent > 0) return std::bit_cast<float>(sign | (exponent + 112U) << 23 | fraction << 13);
  // Below the normal halves: a whole number of 2^-24, which a float holds exactly.
  const float value = static_cast<float>(fraction) * 0x1p-24F;
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(value));
}

std::uint16_t float_to_half(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value), magnitude = bits & 0x7FFFFFFFU;
  const std::uint32_t sign = bits >> 16 & 0x8000U;
  const auto half = [sign](std::uint32_t rest) { return static_cast<std::uint16_t>(sign | rest); };
  if (magnitude > 0x7F800000U) return half(0x7E00U);
  if (magnitude >= 0x47800000U) return half(0x7C00U);
  // A half below 2^-14 counts steps of 2^-24, which are those of floats from 0.5 to 1.
  if (magnitude < 0x38800000U)
    return half(std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5F) - 0x3F000000U);
  return half((magnitude - (112U << 23) + 0xFFFU + (magnitude >> 13 & 1U)) >> 13);
}

void dequantise(GgmlType type, std::span<const std::byte> blocks, std::span<float> values) {
  const GgmlBlock block = block_of(type);
  const std::size_t count = blocks.size() / block.bytes;
  base::ensure(blocks.size() == count * block.bytes && values.size() == count * block.values,
               "whole blocks have a place for each of their values");
  const ReadBlock read = kReaders[static_cast<std::size_t>(type)];
  const auto* in = reinterpret_cast<Bytes>(blocks.data());
  for (std::size_t i = 0; i < count; ++i) read(in + i * block.bytes, values.data() + i * block.values);
}

}  // namespace retort::io
