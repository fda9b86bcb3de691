#include "retort/calibrate/input_statistics.h"

#include <ATen/ATen.h>

#include <tuple>
#include <utility>

#include "retort/base/error.h"
#include "retort/calibrate/histogram.h"

namespace retort::calibrate {
namespace {

at::Tensor column_sum(const at::Tensor& x_NI) {
  return x_NI.sum(at::IntArrayRef{0}, /*keepdim=*/false, at::kDouble);
}

// Sums of |x|, and those of the squares of its mean over each sequence.
std::pair<at::Tensor, at::Tensor> sums_of_sequences(const at::Tensor& absolute_NI,
                                                    std::span<const std::int64_t> starts) {
  auto sum_I = at::zeros({absolute_NI.size(1)}, absolute_NI.options().dtype(at::kDouble));
  auto squares_I = at::zeros_like(sum_I);
  for (std::size_t i = 0; i < std::max<std::size_t>(starts.size(), 1); ++i) {
    const auto begin = i == 0 ? 0 : starts[i];
    const auto end = i + 1 < starts.size() ? starts[i + 1] : absolute_NI.size(0);
    if (end == begin) continue;
    const auto part_I = column_sum(absolute_NI.narrow(0, begin, end - begin));
    sum_I += part_I;
    squares_I += (part_I / static_cast<double>(end - begin)).square();
  }
  return {sum_I, squares_I};
}

void add_to(at::Tensor& sum, const at::Tensor& part) {
  if (part.defined()) sum = sum.defined() ? sum + part : part.clone();
}

at::Tensor times(const at::Tensor& sum, const at::Tensor& factor) {
  return sum.defined() ? sum * factor : sum;
}

// The sum that leaves the cut squares the variance which the histogram says is left of the whole one. Of two
// sums that are cut apart from each other, the difference would be their errors.
at::Tensor cut_sum(const InputStatistics& statistics, const at::Tensor& counts_IB, const at::Tensor& cut_IB,
                   const at::Tensor& values_B, const at::Tensor& cut_squares_I) {
  const auto tokens = static_cast<double>(statistics.tokens);
  const auto counted_I = counts_IB.sum(1).clamp_min(1);
  const auto one_sign_I = at::where(statistics.absolute_I.gt(0), statistics.sum_I / statistics.absolute_I,
                                    at::zeros_like(statistics.sum_I));
  const auto variance = [&](const at::Tensor& part_IB) {
    const auto mean_I = one_sign_I * (counts_IB * part_IB).sum(1) / counted_I;
    return (counts_IB * part_IB.square()).sum(1) / counted_I - mean_I.square();
  };
  const auto whole_I = variance(values_B.expand_as(counts_IB));
  const auto left_I = at::where(whole_I.gt(0), variance(cut_IB) / whole_I, at::ones_like(whole_I));
  const auto exact_I = (statistics.squares_I / tokens - (statistics.sum_I / tokens).square()).clamp_min(0);
  const auto mean_square_I = (cut_squares_I / tokens - exact_I * left_I).clamp_min(0);
  return tokens * mean_square_I.sqrt() * statistics.sum_I.sign();
}

}  // namespace

void InputStatistics::add(const at::Tensor& inputs_NI, const std::string& who,
                          std::span<const std::int64_t> sequence_starts) {
  InputStatistics part;
  part.tokens = inputs_NI.size(0);
  const auto absolute_NI = inputs_NI.abs();
  std::tie(part.absolute_I, part.sequence_squares_I) = sums_of_sequences(absolute_NI, sequence_starts);
  part.sum_I = column_sum(inputs_NI);
  part.maximum_I = absolute_NI.amax(0).to(at::kDouble);
  // Squares of bfloat16 and float32 are made in float32 at least; a channel whose square overflows that is
  // reported.
  const auto wide_NI = absolute_NI.scalar_type() == at::kDouble ? absolute_NI : absolute_NI.to(at::kFloat);
  part.squares_I = column_sum(wide_NI.square());
  base::require<base::ValidationError>(
      part.squares_I.isfinite().all().item<bool>(), who,
      ": activations on the calibration text are not finite (NaN or infinity); "
      "the model is damaged or its compute type too narrow, use float32.");
  if (scale_I.defined()) part.counts_IB = magnitude_counts(absolute_NI, scale_I);
  merge(part);
  if (with_products)
    accumulate_hessian(hessian, inputs_NI, std::max<std::int64_t>(1, std::ssize(sequence_starts)));
}

void InputStatistics::merge(const InputStatistics& other) {
  if (!other.absolute_I.defined()) return;
  tokens += other.tokens;
  maximum_I = maximum_I.defined() ? at::maximum(maximum_I, other.maximum_I) : other.maximum_I.clone();
  add_to(absolute_I, other.absolute_I);
  add_to(sum_I, other.sum_I);
  add_to(squares_I, other.squares_I);
  add_to(sequence_squares_I, other.sequence_squares_I);
  add_to(counts_IB, other.counts_IB);
  add_to(gradient_I, other.gradient_I);
  add_to(hessian.products_CC, other.hessian.products_CC);
  hessian.sequences += other.hessian.sequences;
  if (!scale_I.defined()) scale_I = other.scale_I;
}

InputStatistics winsorised(const InputStatistics& statistics, double quantile) {
  base::ensure(quantile > 0 && quantile <= 1, "a quantile is above 0 and at most 1");
  if (quantile == 1) return statistics;
  base::ensure(statistics.counts_IB.defined(), "cutting at a quantile needs the histogram");
  const auto values_B = bucket_values(statistics.counts_IB.device());
  const auto counts_IB = statistics.counts_IB.to(at::kDouble);
  const auto cut_IB = at::minimum(values_B, magnitude_quantile(statistics.counts_IB, quantile).unsqueeze(1));
  const auto share = [&](const at::Tensor& part_IB, const at::Tensor& whole_B) {
    const auto whole_I = at::mv(counts_IB, whole_B);
    return at::where(whole_I.gt(0), (counts_IB * part_IB).sum(1) / whole_I, at::ones_like(whole_I));
  };
  const auto absolute_I = share(cut_IB, values_B), squares_I = share(cut_IB.square(), values_B.square());
  auto result = statistics;
  result.absolute_I = times(statistics.absolute_I, absolute_I);
  result.squares_I = times(statistics.squares_I, squares_I);
  result.sum_I = cut_sum(statistics, counts_IB, cut_IB, values_B, result.squares_I);
  result.sequence_squares_I = times(statistics.sequence_squares_I, absolute_I.square());
  if (!statistics.hessian.products_CC.defined()) return result;
  const auto root_I = squares_I.sqrt().to(statistics.hessian.products_CC.scalar_type());
  result.hessian.products_CC = times(times(statistics.hessian.products_CC, root_I), root_I.unsqueeze(1));
  return result;
}

}  // namespace retort::calibrate
