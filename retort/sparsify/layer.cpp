#include "retort/sparsify/layer.h"

#include <ATen/ATen.h>

#include "retort/base/error.h"
#include "retort/base/machine.h"
#include "retort/compress/polish.h"
#include "retort/compress/sparse_gpt.h"
#include "retort/model/dtype.h"
#include "retort/model/sparsity.h"
#include "retort/record/keys.h"

namespace retort::sparsify {
namespace {

namespace keys = record::keys;

compress::SparseResult sparse_result(const at::Tensor& weight_RC, const std::string& name,
                                     const LayerInputs& inputs, const SparsifyOptions& options) {
  const auto pattern = model::parse_pattern(options.pattern);
  if (!inputs.factor)
    return compress::mask_weight(weight_RC, inputs.hessian_CC, options.method, pattern, name);
  return compress::sparsify_weight(weight_RC, inputs.hessian_CC, *inputs.factor,
                                   {pattern, options.block_size, options.dampening_fraction, options.mask},
                                   name);
}

// Keeps the polished weights only if they err less on text that they were not fitted to.
PolishResult polish(const at::Tensor& weight_RC, const LayerInputs& inputs, compress::SparseResult& result) {
  const auto type = inputs.hessian_CC.scalar_type();
  const auto original_RC = weight_RC.to(type);
  const auto polished = compress::least_squares_polish(original_RC, result.weight_RC.to(type), result.mask_RC,
                                                       inputs.hessian_CC);
  const auto guard_error = [&](const at::Tensor& sparse_RC) {
    return compress::relative_output_error(original_RC, sparse_RC.to(type), inputs.guard_CC);
  };
  PolishResult outcome{.held_out_error_before = guard_error(result.weight_RC),
                       .held_out_error_after = guard_error(polished.weight_RC),
                       .iterations = polished.iterations};
  outcome.kept = outcome.held_out_error_after < outcome.held_out_error_before;
  if (outcome.kept) {
    result.weight_RC = polished.weight_RC.to(weight_RC.scalar_type());
    result.relative_error =
        compress::relative_output_error(original_RC, polished.weight_RC, inputs.hessian_CC);
  }
  return outcome;
}

}  // namespace

base::Json to_json(const LayerResult& layer) {
  base::Json json = {{keys::kName, layer.name},
                     {keys::kRows, layer.rows},
                     {keys::kCols, layer.cols},
                     {keys::kLoss, layer.loss}};
  if (layer.dampening) json[keys::kDampening] = *layer.dampening;
  if (layer.identity_residual) json[keys::kIdentityResidual] = *layer.identity_residual;
  if (layer.polish)
    json["polish"] = {{"kept", layer.polish->kept},
                      {"held_out_error_before", layer.polish->held_out_error_before},
                      {"held_out_error_after", layer.polish->held_out_error_after},
                      {"iterations", layer.polish->iterations}};
  json[keys::kRelativeError] = layer.relative_error;
  json[keys::kSeconds] = layer.seconds;
  return json;
}

LayerResult layer_from_json(const base::Json& json) {
  const auto optional = [&](record::Key key) {
    return json.contains(key) ? std::optional(json.at(key).get<double>()) : std::nullopt;
  };
  LayerResult layer{.name = json.at(keys::kName),
                    .rows = json.at(keys::kRows),
                    .cols = json.at(keys::kCols),
                    .loss = json.at(keys::kLoss),
                    .dampening = optional(keys::kDampening),
                    .identity_residual = optional(keys::kIdentityResidual),
                    .polish = {},
                    .relative_error = json.at(keys::kRelativeError),
                    .seconds = json.at(keys::kSeconds)};
  if (json.contains("polish")) {
    const auto& polish = json.at("polish");
    layer.polish = {polish.at("kept"), polish.at("held_out_error_before"), polish.at("held_out_error_after"),
                    polish.at("iterations")};
  }
  return layer;
}

LayerResult make_layer_sparse(model::Weights& weights, const architecture::Tensor& layer,
                              const LayerInputs& inputs, const SparsifyOptions& options) {
  const double start = base::monotonic_seconds();
  const auto weight_RC = weights.tensor(layer.name);
  auto result = sparse_result(weight_RC, layer.name, inputs, options);
  LayerResult outcome{.name = layer.name, .rows = layer.rows(), .cols = layer.cols(), .loss = result.loss};
  if (inputs.factor) {
    outcome.dampening = result.dampening_fraction;
    outcome.identity_residual = result.identity_residual;
  }
  if (inputs.guard_CC.defined()) outcome.polish = polish(weight_RC, inputs, result);
  outcome.relative_error = result.relative_error;
  // What follows shall see the values that the file will hold.
  const auto saved_RC = result.weight_RC.to(model::scalar_type(weights.file_dtype));
  base::require<base::ValidationError>(
      saved_RC.isfinite().all().item<bool>() && model::holds(model::parse_pattern(options.pattern), saved_RC),
      layer.name, ": is not finite or not ", options.pattern,
      " after the cast to the file's type; nothing was saved.");
  weight_RC.copy_(saved_RC);
  outcome.seconds = base::monotonic_seconds() - start;
  return outcome;
}

}  // namespace retort::sparsify
