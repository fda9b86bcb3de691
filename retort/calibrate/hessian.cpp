#include "retort/calibrate/hessian.h"

#include <ATen/ATen.h>

#include <utility>

#include "retort/base/error.h"
#include "retort/ops/elementwise.h"
#include "retort/ops/matrix_product.h"

namespace retort::calibrate {

namespace {

constexpr int kUnitBits = 30;  // even: each of two inputs has a half

at::ScalarType product_type(at::ScalarType inputs) {
  return inputs == at::kDouble ? at::kDouble : at::kFloat;
}

}  // namespace

at::ScalarType sum_type(std::int64_t columns, at::ScalarType inputs) {
  return columns <= kDoubleColumns ? at::kDouble : product_type(inputs);
}

void accumulate_hessian(HessianSums& sums, const at::Tensor& x_NC, std::int64_t sequences) {
  const auto columns = x_NC.size(1);
  const auto type = sum_type(columns, x_NC.scalar_type());
  if (!sums.products_CC.defined())
    sums.products_CC = at::zeros({columns, columns}, x_NC.options().dtype(type));
  const auto wide_NC = x_NC.to(product_type(x_NC.scalar_type()));
  if (sums.unit_C.defined()) {
    const auto product_CC = at::zeros({columns, columns}, wide_NC.options());
    ops::add_gram_product(product_CC, wide_NC);
    ops::accumulate_rounded(product_CC, sums.unit_C, sums.products_CC);
  } else {
    ops::add_gram_product(sums.products_CC, wide_NC);
  }
  sums.sequences += sequences;
}

at::Tensor exact_units(const at::Tensor& diagonal_C) {
  if (diagonal_C.scalar_type() != at::kDouble || diagonal_C.numel() > kDoubleColumns) return {};
  // An input without a value so far has the least unit of the others; where none has one, nothing is known.
  const auto inputs_C = diagonal_C.isfinite().logical_and(diagonal_C > 0);
  if (!inputs_C.any().item<bool>()) return {};
  const auto least = diagonal_C.masked_select(inputs_C).min();
  const auto root_C = at::where(inputs_C, diagonal_C, least).sqrt();
  return root_C.log2().ceil().sub_(kUnitBits / 2.0).exp2();
}

void use_units(HessianSums& sums, const at::Tensor& unit_C) {
  sums.unit_C = unit_C;
  if (!unit_C.defined() || !sums.products_CC.defined()) return;
  const auto products_CC = std::exchange(sums.products_CC, at::zeros_like(sums.products_CC));
  ops::accumulate_rounded(products_CC, unit_C, sums.products_CC);
}

at::Tensor hessian_of(const HessianSums& sums, const std::string& who) {
  base::ensure(sums.products_CC.defined() && sums.sequences > 0, "a Hessian needs calibration text");
  auto hessian_CC = sums.products_CC * (2.0 / static_cast<double>(sums.sequences));
  base::require<base::ValidationError>(
      hessian_CC.isfinite().all().item<bool>(), who,
      ": its inputs on the calibration text are not finite (NaN or infinity); the model is "
      "damaged or its compute type too narrow, use float32.");
  base::require<base::ValidationError>(
      hessian_CC.diagonal().gt(0).any().item<bool>(), who,
      ": its inputs on the calibration text are all 0, so nothing says which weights "
      "matter; leave this layer out or use other text.");
  return hessian_CC;
}

ScaledInverse scaled_inverse(const HessianSums& sums, double dampening_fraction, const std::string& who) {
  base::ensure(sums.products_CC.defined(), "an inverse Hessian needs calibration text");
  ScaledInverse result{.root_C = sums.products_CC.diagonal().sqrt(), .inverse_CC = {}};
  const auto units_C = at::where(result.root_C.gt(0), result.root_C, at::ones_like(result.root_C));
  const auto scaled_CC = sums.products_CC / units_C / units_C.unsqueeze(1);
  for (double fraction = dampening_fraction;; fraction = std::min(1.0, fraction * 10)) {
    auto damped_CC = scaled_CC.clone();
    damped_CC.diagonal().fill_(1 + fraction);
    const auto [lower_CC, info] = at::linalg_cholesky_ex(damped_CC);
    if (info.item<int>() == 0) {
      result.inverse_CC = at::cholesky_inverse(lower_CC);
      return result;
    }
    base::require<base::ValidationError>(
        fraction < 1, who,
        ": the Hessian of its inputs cannot be factorised even with its diagonal doubled; the model is "
        "damaged or the calibration text too short.");
  }
}

double output_error(const at::Tensor& change_RC, const at::Tensor& hessian_CC) {
  return 0.5 * at::mm(change_RC, hessian_CC).mul_(change_RC).sum(at::kDouble).item<double>();
}

std::optional<HessianFactor> try_factorise(const at::Tensor& hessian_CC, double dampening_fraction) {
  HessianFactor factor;
  factor.damped_CC = hessian_CC.clone();
  auto diagonal_C = factor.damped_CC.diagonal();
  factor.dead_C = diagonal_C.eq(0);
  diagonal_C.masked_fill_(factor.dead_C, 1);
  diagonal_C.add_(dampening_fraction * diagonal_C.mean().item<double>());
  factor.dampening_fraction = dampening_fraction;

  const auto [lower_CC, info] = at::linalg_cholesky_ex(factor.damped_CC);
  if (info.item<int>() != 0) return std::nullopt;
  const auto [upper_CC, inverse_info] =
      at::linalg_cholesky_ex(at::cholesky_inverse(lower_CC), /*upper=*/true);
  if (inverse_info.item<int>() != 0 || !upper_CC.isfinite().all().item<bool>()) return std::nullopt;
  factor.upper_CC = upper_CC.contiguous();
  return factor;
}

HessianFactor factorise(const at::Tensor& hessian_CC, double dampening_fraction, const std::string& who) {
  base::require<base::UsageError>(dampening_fraction > 0 && dampening_fraction <= 1,
                                  "dampening: expected a fraction above 0 and at most 1, found ",
                                  dampening_fraction, "; 0.01 is usual.");
  for (double fraction = dampening_fraction;; fraction = std::min(1.0, fraction * 10)) {
    if (auto factor = try_factorise(hessian_CC, fraction)) return std::move(*factor);
    base::require<base::ValidationError>(
        fraction < 1, who,
        ": the Hessian of its inputs cannot be factorised even with its mean diagonal "
        "added; use more calibration text or leave this layer out.");
  }
}

}  // namespace retort::calibrate
