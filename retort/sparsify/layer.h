#pragma once
// One layer made sparse, and what came of it.
//
// Shape legend: R rows, C columns of the weight (inputs of the layer).

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>
#include <vector>

#include "retort/architecture/layout.h"
#include "retort/base/json.h"
#include "retort/calibrate/hessian.h"
#include "retort/sparsify/options.h"
#include "retort/sparsify/shared_model.h"

namespace retort::sparsify {

/// Hessians of a layer's inputs on the text that weights are fitted to, and on other text for
/// polishing.
struct LayerInputs {
  at::Tensor hessian_CC;
  at::Tensor guard_CC;                             ///< undefined: nothing is polished
  std::optional<calibrate::HessianFactor> factor;  ///< made of hessian_CC, for methods that update weights
};

/// Relative output errors on text that was not fitted to.
struct PolishResult {
  bool kept = false;  ///< whether the polished weights were taken, because the error fell
  double held_out_error_before = 0, held_out_error_after = 0;
  std::int64_t iterations = 0;
};

struct LayerResult {
  std::string name;
  std::int64_t rows = 0, cols = 0;
  double loss = 0;  ///< 1/2 tr(dW H dW^T) of the saved weights, on the text that they were fitted to
  std::optional<double> dampening = {}, identity_residual = {};
  /// Where its inputs changed places: the share of the scores that the pattern keeps, before and after.
  std::optional<double> kept_share_before = {}, kept_share_after = {};
  std::vector<std::int64_t> order = {};  ///< the former place of each input, empty when all stayed
  std::optional<PolishResult> polish = {};
  double relative_error = 0;  ///< ||dW X|| / ||W X|| of the same
  double seconds = 0;
};
/// For a stage's result: without the order.
base::Json to_json(const LayerResult& layer);
/// All of it, for a block that is finished.
base::Json saved(const LayerResult& layer);
/// Reads what saved() writes.
LayerResult layer_from_json(const base::Json& json);

/// Makes a layer of the model sparse in place, with values that the file's type holds; each rank works on a
/// part of its rows.  Where that is an option, its inputs first change places, with the rows that make them;
/// lineage stays as it is.  `inputs` are the same on all ranks, and so is the result.  Collective.  Throws
/// ValidationError naming the layer: no factorisation, a broken loss identity, values that are not finite or
/// not of the pattern after the cast.
LayerResult make_layer_sparse(SharedModel& model, const architecture::Tensor& layer,
                              const LayerInputs& inputs, const SparsifyOptions& options);

}  // namespace retort::sparsify
