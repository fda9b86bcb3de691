#pragma once
// A linear layer that lost some of its inputs, fitted to what it gave with all of them.
//
// Shape legend: N tokens, D outputs of the layer, I its inputs in the larger model, K of those kept.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "retort/calibrate/text.h"

namespace retort::compress {

/// Sums over tokens, X the larger model's inputs and X' the smaller one's; those of several parts add up.
struct LeastSquaresSums {
  at::Tensor kept_KK;   ///< sum of x'^T x'; undefined before the first tokens
  at::Tensor cross_IK;  ///< sum of x^T x'

  /// Adds the products of a batch of tokens, in float64.
  void add(const at::Tensor& x_NI, const at::Tensor& kept_NK);
  /// Returns by how much ||W' X' - W X||^2 falls when W' is `fitted_DK` instead of `kept_DK`, W
  /// `weight_DI`.
  double gain(const at::Tensor& weight_DI, const at::Tensor& kept_DK, const at::Tensor& fitted_DK) const;
};

/// W' = W_K + (W X X'^T - W_K X' X'^T) (X' X'^T + lambda diag)^-1, with lambda as a fraction of the square of
/// each input, so that scaling an input and its weights changes no result.  `kept_DK`: W_K.  All in the type
/// of the sums.  Undefined where even the damped inputs cannot be told apart.
at::Tensor least_squares(const at::Tensor& weight_DI, const at::Tensor& kept_DK, const LeastSquaresSums& sums,
                         double dampening_fraction);

/// The ridge of a fit of `inputs` inputs to `tokens` tokens, as a fraction of the square of each input: the
/// fewer tokens an input has, the more of what a fit finds is chance.  Source: benchmarks/ridge, decision 27.
double dampening_of_fit(std::int64_t inputs, std::int64_t tokens);

/// Throws ValidationError naming `layer` for sums over its inputs that are not finite.
void require_finite_inputs(const at::Tensor& sums, const std::string& layer);

/// The text of a fit: `fitted` makes the sums, `choosing` says whether a fit is taken.  Both have the same
/// sources.
struct FitSources {
  const std::vector<calibrate::SourceText>&fitted, &choosing;
};
/// It as batches, what is fitted to first.
struct FitText {
  std::vector<calibrate::Batch> batches;
  std::size_t fitted = 0;  ///< so many batches; the others choose
  std::int64_t fitted_tokens = 0;

  bool chooses(std::size_t batch) const { return batch >= fitted; }
};
/// Throws DataError for a source without text of either kind.
FitText fit_text(const FitSources& sources, const architecture::Config& config, at::Device device,
                 std::int64_t batch_tokens);

}  // namespace retort::compress
