#include "retort/compress/least_squares.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <iterator>

#include "retort/base/error.h"
#include "retort/ops/matrix_product.h"

namespace retort::compress {
void LeastSquaresSums::add(const at::Tensor& x_NI, const at::Tensor& kept_NK) {
  // The products of a batch in its own type: in float64 they would take longer than the model.
  if (!kept_KK.defined()) {
    const auto sums = kept_NK.options().dtype(at::kDouble);
    kept_KK = at::zeros({kept_NK.size(1), kept_NK.size(1)}, sums);
    cross_IK = at::zeros({x_NI.size(1), kept_NK.size(1)}, sums);
  }
  ops::add_gram_product(kept_KK, kept_NK);
  cross_IK.add_(ops::matrix_product(x_NI.t(), kept_NK));
}

// From the difference, not as one of two large numbers.
double LeastSquaresSums::gain(const at::Tensor& weight_DI, const at::Tensor& kept_DK,
                              const at::Tensor& fitted_DK) const {
  const auto change_DK = fitted_DK - kept_DK;
  const auto gap_DK = at::mm(weight_DI, cross_IK) - at::mm(kept_DK, kept_KK);
  return (change_DK * (2 * gap_DK - at::mm(change_DK, kept_KK))).sum(at::kDouble).item<double>();
}

at::Tensor least_squares(const at::Tensor& weight_DI, const at::Tensor& kept_DK, const LeastSquaresSums& sums,
                         double dampening_fraction) {
  const auto gap_DK = at::mm(weight_DI, sums.cross_IK) - at::mm(kept_DK, sums.kept_KK);
  auto damped_KK = sums.kept_KK.clone();
  auto diagonal_K = damped_KK.diagonal();
  // Each input by its own square: by the mean, one massive channel would hold all others where they are.
  diagonal_K.mul_(1 + dampening_fraction).add_(damped_KK.scalar_type() == at::kDouble ? 1e-300 : 1e-37);
  const auto [lower_KK, info] = at::linalg_cholesky_ex(damped_KK);
  if (info.item<int>() != 0) return {};
  return kept_DK + at::cholesky_solve(gap_DK.t(), lower_KK).t();
}

double dampening_of_fit(std::int64_t inputs, std::int64_t tokens) {
  constexpr double kLeast = 0.01, kTokensOfAnInput = 6;
  return std::max(kLeast, kTokensOfAnInput * static_cast<double>(inputs) / static_cast<double>(tokens));
}

void require_finite_inputs(const at::Tensor& sums, const std::string& layer) {
  base::require<base::ValidationError>(
      sums.isfinite().all().item<bool>(), layer,
      ": its inputs on the calibration text are not finite (NaN or infinity); the model is damaged.");
}

FitText fit_text(const FitSources& sources, const architecture::Config& config, at::Device device,
                 std::int64_t batch_tokens) {
  FitText text{.batches = calibrate::calibration_batches(sources.fitted, config, device, batch_tokens)};
  text.fitted_tokens = calibrate::num_tokens(text.batches);
  text.fitted = text.batches.size();
  auto choosing = calibrate::calibration_batches(sources.choosing, config, device, batch_tokens);
  std::move(choosing.begin(), choosing.end(), std::back_inserter(text.batches));
  return text;
}

}  // namespace retort::compress
