#pragma once
// The Hessian of a linear layer's squared output error, and its factor for the sweep of sparse_gpt.h.
// Source: Frantar & Alistarh, SparseGPT (2023), sections 3 and 4.
//
// Shape legend: N tokens, R rows, C columns of the weight (inputs of the layer).

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>

namespace retort::calibrate {

/// Sums and factors with at most so many columns are float64: at 8192 one matrix takes 512 MiB.
/// Wider ones are float32.
inline constexpr std::int64_t kDoubleColumns = 8192;

/// Sums over calibration text; those of several parts add up to those of the whole.
struct HessianSums {
  at::Tensor products_CC;  ///< sum of x^T x; undefined before the first tokens
  std::int64_t sequences = 0;
  /// Where it is defined, products are rounded to multiples of unit_i unit_j, so that their sum is exact and
  /// does not depend on which rank adds what.  float64, powers of two.
  at::Tensor unit_C = {};
};

/// Units for the sums of a text, from the diagonal of the products of its first part; undefined where sums
/// are float32.  They resolve 2^-30 of what that part has, less than products in float32 err, and leave room
/// for 2^22 times as much.
at::Tensor exact_units(const at::Tensor& diagonal_C);
/// Makes sums so far multiples of these units; later ones are.
void use_units(HessianSums& sums, const at::Tensor& unit_C);

/// The type of the products of inputs of type `inputs`.
at::ScalarType sum_type(std::int64_t columns, at::ScalarType inputs);

/// Adds the inputs x_NC of a layer.  The product of one batch is made in float32 (float64 for float64; never
/// in bfloat16 or TF32) and added in float64 where that is affordable.
void accumulate_hessian(HessianSums& sums, const at::Tensor& x_NC, std::int64_t sequences);

/// H = 2 / sequences * sum x^T x.  Throws ValidationError naming `who` when it is not finite or zero
/// throughout.
at::Tensor hessian_of(const HessianSums& sums, const std::string& who);

/// 1/2 tr(dW H dW^T): half the squared change of a layer's output, per sequence.
double output_error(const at::Tensor& change_RC, const at::Tensor& hessian_CC);

struct HessianFactor {
  at::Tensor damped_CC;           ///< H with 1 on the diagonal of dead columns, plus lambda I
  at::Tensor upper_CC;            ///< U with damped^-1 = U^T U
  at::Tensor dead_C;              ///< bool: columns whose input was always 0
  double dampening_fraction = 0;  ///< lambda / mean of the diagonal
};

/// H in units in which every input has the mean square 1, damped by a fraction of *each* diagonal element, so
/// that multiplying an input by s and dividing its weights by s changes nothing that is computed from it.
struct ScaledInverse {
  at::Tensor root_C;      ///< root of the sums' diagonal; 0: the input was always 0
  at::Tensor inverse_CC;  ///< of (R^-1 H R^-1 + fraction I) with R = diag(root), 1 for columns without input
};

/// Raises the fraction as factorise() does, and throws what it throws.
ScaledInverse scaled_inverse(const HessianSums& sums, double dampening_fraction, const std::string& who);

/// Returns nothing when a Cholesky factorisation fails.  Computes in H's type.
std::optional<HessianFactor> try_factorise(const at::Tensor& hessian_CC, double dampening_fraction);

/// Tries dampening_fraction, then ten times as much, and again up to 1: what it took is in the result.
/// Throws ValidationError naming `who` when nothing helped; there is no other fallback.
HessianFactor factorise(const at::Tensor& hessian_CC, double dampening_fraction, const std::string& who);

}  // namespace retort::calibrate
