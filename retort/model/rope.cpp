#include "retort/model/rope.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "retort/ops/elementwise.h"

namespace retort::model {
namespace {

using architecture::Rope;
using Kind = Rope::Kind;

// Long wavelengths are divided by the factor, short ones stay, and those between go from one to the other.
at::Tensor llama3(const Rope& rope, const at::Tensor& plain_R2) {
  const auto context = static_cast<double>(rope.original_context);
  const auto wavelength_R2 = 2 * std::numbers::pi / plain_R2;
  const auto share_R2 = (context / wavelength_R2 - rope.low_frequency_factor) /
                        (rope.high_frequency_factor - rope.low_frequency_factor);
  const auto between_R2 = (1 - share_R2) * plain_R2 / rope.factor + share_R2 * plain_R2;
  const auto longer = wavelength_R2.gt(context / rope.low_frequency_factor),
             shorter = wavelength_R2.lt(context / rope.high_frequency_factor);
  return at::where(longer, plain_R2 / rope.factor, at::where(shorter, plain_R2, between_R2));
}

// The channel whose angle makes so many rotations within the original context.
double channel_of(const Rope& rope, double rotations, std::int64_t width) {
  const auto context = static_cast<double>(rope.original_context);
  return static_cast<double>(width) * std::log(context / (rotations * 2 * std::numbers::pi)) /
         (2 * std::log(rope.theta));
}

// Channels below the ramp stay, those above it are divided by the factor.
at::Tensor yarn(const Rope& rope, const at::Tensor& plain_R2, std::int64_t width) {
  double low = channel_of(rope, rope.beta_fast, width), high = channel_of(rope, rope.beta_slow, width);
  if (rope.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, static_cast<double>(width - 1));
  if (low == high) high += 0.001;
  const auto ramp_R2 = ((at::arange(width / 2, plain_R2.options()) - low) / (high - low)).clamp(0, 1);
  return plain_R2 / rope.factor * ramp_R2 + plain_R2 * (1 - ramp_R2);
}

at::Tensor longrope(const Rope& rope, const at::Tensor& plain_R2, std::int64_t length) {
  const auto& factors = length > rope.original_context ? rope.long_factors : rope.short_factors;
  return plain_R2 / at::tensor(factors, plain_R2.options());
}

}  // namespace

at::Tensor rope_frequencies(const Rope& rope, std::int64_t head_dim, std::int64_t context,
                            std::int64_t length) {
  const auto width = static_cast<std::int64_t>(static_cast<double>(head_dim) * rope.rotated_share);
  if (rope.kind == Kind::dynamic && length > context) {
    const double stretch =
        rope.factor * static_cast<double>(length) / static_cast<double>(context) - (rope.factor - 1);
    const double power = static_cast<double>(width) / static_cast<double>(width - 2);
    return ops::rotary_frequencies(width, rope.theta * std::pow(stretch, power));
  }
  const auto plain_R2 = ops::rotary_frequencies(width, rope.theta);
  switch (rope.kind) {
    case Kind::linear:
      return plain_R2 / rope.factor;
    case Kind::llama3:
      return llama3(rope, plain_R2);
    case Kind::yarn:
      return yarn(rope, plain_R2, width);
    case Kind::longrope:
      return longrope(rope, plain_R2, length);
    case Kind::plain:
    case Kind::dynamic:
      break;
  }
  return plain_R2;
}

bool same_angles(const Rope& rope, std::int64_t context, std::int64_t length, std::int64_t other) {
  if (rope.kind == Kind::longrope) return (length > rope.original_context) == (other > rope.original_context);
  return rope.kind != Kind::dynamic || length == other || (length <= context && other <= context);
}

at::Tensor query_factors(const Rope& rope, const at::Tensor& positions_N) {
  if (rope.query_growth == 0) return {};
  const auto periods_N = at::floor(positions_N.to(at::kFloat) / static_cast<double>(rope.original_context));
  return at::log1p(periods_N) * rope.query_growth + 1;
}

}  // namespace retort::model
