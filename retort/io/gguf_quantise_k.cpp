// The order of sums and products is llama.cpp's, and each is rounded: CMakeLists.txt keeps the compiler from
// fusing them.
#include "retort/io/gguf_quantise_k.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>

#include "retort/io/gguf_blocks.h"

namespace retort::io {
namespace {

constexpr std::size_t kBlock = 256;
// Scales of such values are too large for a half in every type; sums of their squares are still finite.
constexpr float kBeyond = 1e9F;
// A group or a block of Q6_K below this has zeros alone.
constexpr float kNothing = 1e-15F;

bool too_large(const float* in) {
  return std::any_of(in, in + kBlock, [](float value) { return std::abs(value) > kBeyond; });
}

// The nearest integer, of two the even one: it stands in the low bits after the sum.  What is beyond 2^22
// gives what stands there.
int nearest(float value) {
  return static_cast<int>(std::bit_cast<std::uint32_t>(value + 0x1.8p23F) & 0x7FFFFFU) - 0x400000;
}

float float_of(int value) {
  return static_cast<float>(value);
}

bool put_half(std::uint8_t* out, std::uint16_t half) {
  out[0] = static_cast<std::uint8_t>(half & 255);
  out[1] = static_cast<std::uint8_t>(half >> 8);
  return (half & 0x7C00) != 0x7C00;
}

// Q4_K and Q5_K: a value is step * quant - offset.

constexpr std::size_t kGroup = 32, kGroups = kBlock / kGroup;
using Quants = std::array<std::uint8_t, kGroup>;

// Steps that are tried divide the range of a group into `largest` parts, and a few tenths fewer or more.
struct Search {
  int largest;
  float first;
  int tries;
};
constexpr Search kSearch4{15, -1.0F, 21}, kSearch5{31, -0.5F, 16};

struct Fit {
  float step = 0, offset = 0;
  Quants quants{};
};

// A group with the weights of its errors.
struct Group {
  std::array<float, kGroup> values, weights;
  float least = 0, most = 0;  // least is 0 where all are above
  float sum_weights = 0, sum_weighted = 0;

  explicit Group(const float* in) : least(in[0]), most(in[0]) {
    float squares = 0;
    for (std::size_t i = 0; i < kGroup; ++i) squares += in[i] * in[i];
    const float root_mean = std::sqrt(squares / float{kGroup});
    for (std::size_t i = 0; i < kGroup; ++i) {
      values[i] = in[i];
      weights[i] = root_mean + std::abs(in[i]);
      sum_weights += weights[i];
      sum_weighted += weights[i] * in[i];
      if (in[i] < least) least = in[i];
      if (in[i] > most) most = in[i];
    }
    if (least > 0) least = 0;
  }

  // With `parts` steps from the offset to the largest value.
  Quants quants(float parts, float offset, int largest) const {
    const float per_unit = parts / (most + offset);
    Quants made;
    for (std::size_t i = 0; i < kGroup; ++i) {
      const int quant = std::clamp(nearest(per_unit * (values[i] + offset)), 0, largest);
      made[i] = static_cast<std::uint8_t>(quant);
    }
    return made;
  }

  float error(const Fit& fit) const {
    float sum = 0;
    for (std::size_t i = 0; i < kGroup; ++i) {
      const float off = fit.step * float_of(fit.quants[i]) - fit.offset - values[i];
      sum += weights[i] * (off * off);
    }
    return sum;
  }

  // The line through these quants of least squares, with an offset that is not negative; false where there is
  // none.
  bool fit_line(Fit& fit) const {
    float sum = 0, squares = 0, products = 0;
    for (std::size_t i = 0; i < kGroup; ++i) {
      const float quant = float_of(fit.quants[i]), weighted = weights[i] * quant;
      sum += weighted;
      squares += weighted * quant;
      products += weighted * values[i];
    }
    const float divisor = sum_weights * squares - sum * sum;
    if (!(divisor > 0)) return false;
    fit.step = (sum_weights * products - sum_weighted * sum) / divisor;
    const float lowest = (squares * sum_weighted - sum * products) / divisor;
    fit.offset = -lowest;
    if (lowest > 0) {
      fit.offset = 0;
      fit.step = products / squares;
    }
    return true;
  }
};

// Each try begins with the offset that was best before.
Fit best_fit(const float* in, const Search& search) {
  const Group group(in);
  const float largest = float_of(search.largest);
  Fit best{0, -group.least, {}};
  if (group.most == group.least) return best;
  best.step = 1 / (largest / (group.most + best.offset));
  best.quants = group.quants(largest, best.offset, search.largest);
  float least_error = group.error(best);
  for (int i = 0; i < search.tries; ++i) {
    const float parts = search.first + 0.1F * float_of(i) + largest;
    Fit fit{0, 0, group.quants(parts, best.offset, search.largest)};
    if (!group.fit_line(fit)) continue;
    const float error = group.error(fit);
    if (!(error < least_error)) continue;
    least_error = error;
    best = fit;
  }
  return best;
}

// Eight pairs of six bits in twelve bytes: the first four plain, the others with their high bits above those.
void put_scale_and_min(std::uint8_t* packed, std::size_t group, unsigned scale, unsigned min) {
  const auto byte = [](unsigned value) { return static_cast<std::uint8_t>(value); };
  const std::size_t i = group % 4;
  if (group < 4) {
    packed[i] = byte(scale);
    packed[4 + i] = byte(min);
    return;
  }
  packed[8 + i] = byte((scale & 15U) | (min & 15U) << 4);
  packed[i] = byte(packed[i] | scale >> 4 << 6);
  packed[4 + i] = byte(packed[4 + i] | min >> 4 << 6);
}

// In six bits.
unsigned small(float value) {
  return std::min(63U, static_cast<unsigned>(nearest(value)) & 255U);
}

struct Block {
  std::array<std::uint8_t, kBlock> quants;
  bool fits = true;
};

// Writes the sixteen bytes that begin a block of both types.
Block fit_block(const float* in, std::uint8_t* out, const Search& search) {
  std::array<Fit, kGroups> fits;
  float largest_step = 0, largest_offset = 0;
  for (std::size_t g = 0; g < kGroups; ++g) {
    fits[g] = best_fit(in + g * kGroup, search);
    if (fits[g].step > largest_step) largest_step = fits[g].step;
    if (fits[g].offset > largest_offset) largest_offset = fits[g].offset;
  }
  const float per_step = largest_step > 0 ? 63.0F / largest_step : 0.0F;
  const float per_offset = largest_offset > 0 ? 63.0F / largest_offset : 0.0F;
  const std::uint16_t step_half = float_to_half(largest_step / 63.0F);
  const std::uint16_t offset_half = float_to_half(largest_offset / 63.0F);

  Block block;
  for (std::size_t g = 0; g < kGroups; ++g) {
    const unsigned steps = small(per_step * fits[g].step), offsets = small(per_offset * fits[g].offset);
    put_scale_and_min(out + 4, g, steps, offsets);
    const float step = half_to_float(step_half) * static_cast<float>(steps);
    const float offset = half_to_float(offset_half) * static_cast<float>(offsets);
    for (std::size_t i = 0; i < kGroup; ++i) {
      const int quant = step == 0
                            ? fits[g].quants[i]
                            : std::clamp(nearest((in[g * kGroup + i] + offset) / step), 0, search.largest);
      block.quants[g * kGroup + i] = static_cast<std::uint8_t>(quant);
    }
  }
  block.fits = put_half(out, step_half);
  block.fits = put_half(out + 2, offset_half) && block.fits;
  return block;
}

// Values i and i + 32 of each 64 share a byte.
void put_nibbles(std::uint8_t* out, const std::array<std::uint8_t, kBlock>& quants) {
  for (std::size_t i = 0; i < kBlock / 2; ++i) {
    const std::size_t low = i / 32 * 64 + i % 32;
    out[i] = static_cast<std::uint8_t>((quants[low] & 15) | (quants[low + 32] & 15) << 4);
  }
}

// Q6_K: a value is step * (quant - 32), with groups of sixteen.

constexpr std::size_t kSmallGroup = 16, kSmallGroups = kBlock / kSmallGroup;
constexpr int kMiddle = 32;

int centred(float value) {
  return std::clamp(nearest(value), -kMiddle, kMiddle - 1);
}

// Weighted by their squares: sums of value * quant and of quant * quant.
struct Sums {
  float products = 0, squares = 0;

  Sums(const float* in, float per_unit) {
    for (std::size_t i = 0; i < kSmallGroup; ++i) {
      const float weight = in[i] * in[i], quant = float_of(centred(per_unit * in[i]));
      products += weight * in[i] * quant;
      squares += weight * quant * quant;
    }
  }
};

// The step of a group, and its quants with `kMiddle` added.
float best_step(const float* in, std::uint8_t* quants) {
  float largest = 0;
  for (std::size_t i = 0; i < kSmallGroup; ++i)
    if (std::abs(in[i]) > std::abs(largest)) largest = in[i];
  std::fill(quants, quants + kSmallGroup, std::uint8_t{0});
  if (std::abs(largest) < kNothing) return 0;

  float best_per_unit = -float_of(kMiddle) / largest;
  const Sums first(in, best_per_unit);
  float step = first.squares != 0 ? first.products / first.squares : 0.0F;
  float best = step * first.products;
  for (int tenths = -9; tenths <= 9; ++tenths) {
    if (tenths == 0) continue;
    const float per_unit = -(float_of(kMiddle) + 0.1F * float_of(tenths)) / largest;
    const Sums sums(in, per_unit);
    if (!(sums.squares > 0 && sums.products * sums.products > best * sums.squares)) continue;
    best_per_unit = per_unit;
    step = sums.products / sums.squares;
    best = step * sums.products;
  }
  for (std::size_t i = 0; i < kSmallGroup; ++i)
    quants[i] = static_cast<std::uint8_t>(kMiddle + centred(best_per_unit * in[i]));
  return step;
}

// Four low bits of values i and i + 64 of each 128 share a byte, two high bits of four values another.
void put_six_bits(std::uint8_t* low, std::uint8_t* high, const std::array<std::uint8_t, kBlock>& quants) {
  std::fill(low, low + kBlock / 2, std::uint8_t{0});
  std::fill(high, high + kBlock / 4, std::uint8_t{0});
  for (std::size_t i = 0; i < kBlock; ++i) {
    low[i / 128 * 64 + i % 64] |= static_cast<std::uint8_t>((quants[i] & 15) << i / 64 % 2 * 4);
    high[i / 128 * 32 + i % 32] |= static_cast<std::uint8_t>(quants[i] >> 4 << i / 32 % 4 * 2);
  }
}

}  // namespace

bool write_q4_k(const float* in, std::uint8_t* out) {
  if (too_large(in)) return false;
  const Block block = fit_block(in, out, kSearch4);
  put_nibbles(out + 16, block.quants);
  return block.fits;
}

bool write_q5_k(const float* in, std::uint8_t* out) {
  if (too_large(in)) return false;
  const Block block = fit_block(in, out, kSearch5);
  for (std::size_t i = 0; i < 32; ++i) {
    unsigned bits = 0;
    for (std::size_t g = 0; g < kGroups; ++g) bits |= unsigned{block.quants[g * kGroup + i]} >> 4 << g;
    out[16 + i] = static_cast<std::uint8_t>(bits);
  }
  put_nibbles(out + 48, block.quants);
  return block.fits;
}

bool write_q6_k(const float* in, std::uint8_t* out) {
  if (too_large(in)) return false;
  std::uint8_t* const scales = out + 192;
  std::array<std::uint8_t, kBlock> quants;
  std::array<float, kSmallGroups> steps;
  float largest = 0;
  for (std::size_t g = 0; g < kSmallGroups; ++g) {
    steps[g] = best_step(in + g * kSmallGroup, quants.data() + g * kSmallGroup);
    if (std::abs(steps[g]) > std::abs(largest)) largest = steps[g];
  }
  if (std::abs(largest) < kNothing) {
    std::fill(out, out + 210, std::uint8_t{0});
    return true;
  }
  const float per_unit = -128.0F / largest;
  const std::uint16_t half = float_to_half(1 / per_unit);
  for (std::size_t g = 0; g < kSmallGroups; ++g) {
    const int scale = std::min(127, nearest(per_unit * steps[g]));
    scales[g] = static_cast<std::uint8_t>(scale);
    const float step = half_to_float(half) * float_of(static_cast<std::int8_t>(scales[g]));
    if (step == 0) continue;
    for (std::size_t i = g * kSmallGroup; i < (g + 1) * kSmallGroup; ++i)
      quants[i] = static_cast<std::uint8_t>(centred(in[i] / step) + kMiddle);
  }
  put_six_bits(out, out + 128, quants);
  return put_half(out + 208, half);
}

}  // namespace retort::io
