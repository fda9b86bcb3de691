#include "retort/compress/least_squares.h"

#include <ATen/ATen.h>

#include <set>

#include "retort/base/error.h"

namespace retort::compress {
namespace {

constexpr std::int64_t kGuardEvery = 5;

}  // namespace

void LeastSquaresSums::add(const at::Tensor& x_NI, const at::Tensor& kept_NK) {
  const auto wide_NK = kept_NK.to(at::kDouble), products_KK = at::mm(wide_NK.t(), wide_NK);
  const auto products_IK = at::mm(x_NI.to(at::kDouble).t(), wide_NK);
  kept_KK = kept_KK.defined() ? kept_KK.add_(products_KK) : products_KK;
  cross_IK = cross_IK.defined() ? cross_IK.add_(products_IK) : products_IK;
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

void require_finite_inputs(const at::Tensor& sums, const std::string& layer) {
  base::require<base::ValidationError>(
      sums.isfinite().all().item<bool>(), layer,
      ": its inputs on the calibration text are not finite (NaN or infinity); the model is damaged.");
}

bool FitText::judges_every_source() const {
  std::set<std::size_t> sources, judged;
  for (std::size_t i = 0; i < batches.size(); ++i) {
    sources.insert(batches[i].source);
    if (guards[i]) judged.insert(batches[i].source);
  }
  return judged == sources;
}

FitText fit_text(const std::vector<calibrate::SourceText>& sources, const architecture::Config& config,
                 at::Device device, std::int64_t batch_tokens) {
  FitText text{.batches = calibrate::calibration_batches(sources, config, device, batch_tokens),
               .guards = {}};
  text.guards = calibrate::guard_batches(text.batches, kGuardEvery);
  return text;
}

}  // namespace retort::compress
