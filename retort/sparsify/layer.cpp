#include "retort/sparsify/layer.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "retort/base/error.h"
#include "retort/base/machine.h"
#include "retort/comm/lead.h"
#include "retort/compress/alps.h"
#include "retort/compress/column_order.h"
#include "retort/compress/polish.h"
#include "retort/compress/reorder.h"
#include "retort/compress/sparse_gpt.h"
#include "retort/model/dtype.h"
#include "retort/model/sparsity.h"
#include "retort/model/tokens.h"
#include "retort/record/keys.h"

namespace retort::sparsify {
namespace {

namespace keys = record::keys;

compress::OutputError of_all_rows(comm::Group& group, const compress::OutputError& own) {
  double sums[] = {own.change, own.whole};
  group.all_sum(sums);
  return {.change = sums[0], .whole = sums[1]};
}

bool is_so_for_all(comm::Group& group, bool own) {
  double count[] = {own ? 1.0 : 0.0};
  group.all_sum(count);
  return count[0] == group.size();
}

// Of some rows of a layer.
compress::SparseResult sparse_result(const at::Tensor& weight_RC, const std::string& name,
                                     const LayerInputs& inputs, const SparsifyOptions& options,
                                     comm::Group& group) {
  const auto pattern = model::parse_pattern(options.pattern);
  if (options.method == compress::SparseMethod::alps)
    return compress::alps(weight_RC, inputs.hessian_CC, *inputs.factor, pattern, name,
                          [&](const std::function<bool()>& part) {
                            bool own = false;
                            group.agree([&] { own = part(); });
                            return is_so_for_all(group, own);
                          });
  compress::SparseResult result;
  group.agree([&] {
    result = inputs.factor
                 ? compress::sparsify_weight(
                       weight_RC, inputs.hessian_CC, *inputs.factor,
                       {pattern, options.block_size, options.dampening_fraction, options.mask}, name)
                 : compress::mask_weight(weight_RC, inputs.hessian_CC, options.method, pattern, name);
  });
  return result;
}

// What each weight is worth: the error that its removal leaves when all others make up for it, w^2 /
// (H^-1)_cc, or where nothing makes up for it, w^2 H_cc.
at::Tensor removal_scores(const at::Tensor& weight_RC, const LayerInputs& inputs) {
  const auto worth_C = inputs.factor ? inputs.factor->upper_CC.square().sum(at::IntArrayRef{0}).reciprocal()
                                     : inputs.hessian_CC.diagonal();
  auto score_RC = weight_RC.to(worth_C.scalar_type()).square() * worth_C;
  if (inputs.factor) score_RC.masked_fill_(inputs.factor->dead_C, 0);
  return score_RC;
}

// The same inputs in another order.
LayerInputs reordered(const LayerInputs& inputs, const std::vector<std::int64_t>& order,
                      const SparsifyOptions& options, const std::string& name) {
  const auto order_C = model::index_tensor(order, inputs.hessian_CC.device());
  const auto in_order = [&](const at::Tensor& hessian_CC) {
    return hessian_CC.defined() ? hessian_CC.index_select(0, order_C).index_select(1, order_C) : hessian_CC;
  };
  LayerInputs result{in_order(inputs.hessian_CC), in_order(inputs.guard_CC), {}};
  if (inputs.factor)
    result.factor = calibrate::factorise(result.hessian_CC, options.dampening_fraction, name);
  return result;
}

// Rank 0 looks for a better order of the layer's inputs: empty where there is none.
void find_order(const SharedModel& model, const architecture::Tensor& layer, const LayerInputs& inputs,
                const model::Pattern& pattern, LayerResult& outcome) {
  const auto& weights = model.weights();
  const auto score_RC = removal_scores(weights.on_device(weights.tensor(layer.name)), inputs);
  outcome.order = compress::input_order(weights.config, weights.layout, layer, score_RC, pattern);
  if (outcome.order.empty()) return;
  const auto order_C = model::index_tensor(outcome.order, score_RC.device());
  outcome.kept_share_before = compress::kept_share(score_RC, pattern);
  outcome.kept_share_after = compress::kept_share(score_RC.index_select(1, order_C), pattern);
}

void share_order(comm::Group& group, LayerResult& outcome) {
  if (group.size() == 1) return;
  auto text = saved(outcome).dump();
  group.share(text);
  outcome = layer_from_json(base::Json::parse(text));
}

// Puts the layer's inputs in a better order where there is one, and notes it.
LayerInputs permute(SharedModel& model, const architecture::Tensor& layer, const LayerInputs& inputs,
                    const SparsifyOptions& options, LayerResult& outcome) {
  comm::lead(model.group(),
             [&] { find_order(model, layer, inputs, model::parse_pattern(options.pattern), outcome); });
  share_order(model.group(), outcome);
  if (outcome.order.empty()) return inputs;
  model.change([&](model::Weights& weights) { compress::reorder_inputs(weights, layer, outcome.order); });
  LayerInputs ordered;
  model.group().agree([&] { ordered = reordered(inputs, outcome.order, options, layer.name); });
  return ordered;
}

// Keeps the polished weights only if the layer errs less on text that they were not fitted to.  In the
// weight's type, as all errors: float64 takes longer and changes none in the fourth place.
PolishResult polish(const at::Tensor& weight_RC, const LayerInputs& inputs, comm::Group& group,
                    compress::SparseResult& result) {
  const auto type = weight_RC.scalar_type();
  const auto fitted_CC = (inputs.factor ? inputs.factor->damped_CC : inputs.hessian_CC).to(type);
  const auto guard_CC = inputs.guard_CC.to(type);
  const auto polished =
      compress::least_squares_polish(weight_RC, result.weight_RC, result.mask_RC, fitted_CC);
  const auto guard_error = [&](const at::Tensor& sparse_RC) {
    return of_all_rows(group, compress::output_error(weight_RC, sparse_RC, guard_CC)).relative();
  };
  PolishResult outcome{.held_out_error_before = guard_error(result.weight_RC),
                       .held_out_error_after = guard_error(polished.weight_RC),
                       .iterations = polished.iterations};
  outcome.kept = outcome.held_out_error_after < outcome.held_out_error_before;
  if (outcome.kept) result.weight_RC = polished.weight_RC;
  return outcome;
}

// The rank's part of the work on a layer, in the file's type: what follows shall see the values that the file
// will hold.  Notes what came of all parts.
at::Tensor sparse_rows(const at::Tensor& weight_RC, const LayerInputs& inputs, const SparsifyOptions& options,
                       at::ScalarType file_type, comm::Group& group, LayerResult& outcome) {
  auto result = sparse_result(weight_RC, outcome.name, inputs, options, group);
  if (inputs.guard_CC.defined()) outcome.polish = polish(weight_RC, inputs, group, result);
  const auto saved_RC = result.weight_RC.to(file_type).to(weight_RC.scalar_type());
  const auto error = of_all_rows(
      group, compress::output_error(weight_RC, saved_RC, inputs.hessian_CC.to(weight_RC.scalar_type())));
  outcome.loss = error.change;
  outcome.relative_error = error.relative();
  if (inputs.factor) outcome.dampening = result.dampening_fraction;
  if (options.method == compress::SparseMethod::sparse_gpt)
    outcome.identity_residual = std::ranges::max(group.all_values(result.identity_residual));
  if (outcome.polish)
    outcome.polish->iterations = std::ranges::max(group.all_values(outcome.polish->iterations));
  return saved_RC;
}

}  // namespace

base::Json to_json(const LayerResult& layer) {
  base::Json json = {{keys::kName, layer.name},
                     {keys::kRows, layer.rows},
                     {keys::kCols, layer.cols},
                     {keys::kLoss, layer.loss}};
  if (layer.dampening) json[keys::kDampening] = *layer.dampening;
  if (layer.identity_residual) json[keys::kIdentityResidual] = *layer.identity_residual;
  if (layer.kept_share_after) {
    json[keys::kKeptShareBefore] = *layer.kept_share_before;
    json[keys::kKeptShareAfter] = *layer.kept_share_after;
  }
  if (layer.polish)
    json["polish"] = {{"kept", layer.polish->kept},
                      {"held_out_error_before", layer.polish->held_out_error_before},
                      {"held_out_error_after", layer.polish->held_out_error_after},
                      {"iterations", layer.polish->iterations}};
  json[keys::kRelativeError] = layer.relative_error;
  json[keys::kSeconds] = layer.seconds;
  return json;
}

base::Json saved(const LayerResult& layer) {
  auto json = to_json(layer);
  json["order"] = layer.order;
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
                    .kept_share_before = optional(keys::kKeptShareBefore),
                    .kept_share_after = optional(keys::kKeptShareAfter),
                    .order = json.at("order"),
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

LayerResult make_layer_sparse(SharedModel& model, const architecture::Tensor& layer,
                              const LayerInputs& natural, const SparsifyOptions& options) {
  const double start = base::monotonic_seconds();
  LayerResult outcome{.name = layer.name, .rows = layer.rows(), .cols = layer.cols()};
  const auto inputs = options.permute ? permute(model, layer, natural, options, outcome) : natural;
  const auto own = model.own_rows(layer);
  const auto weight_RC = model.weights().on_device(
      model.weights()
          .tensor(layer.name)
          .slice(0, static_cast<std::int64_t>(own.first), static_cast<std::int64_t>(own.last)));
  const auto file_type = model::scalar_type(model.weights().file_dtype);
  const auto saved_RC =
      model.gathered_rows(layer, sparse_rows(weight_RC, inputs, options, file_type, model.group(), outcome));
  model.group().together([&] {
    base::require<base::ValidationError>(saved_RC.isfinite().all().item<bool>() &&
                                             model::holds(model::parse_pattern(options.pattern), saved_RC),
                                         layer.name, ": is not finite or not ", options.pattern,
                                         " after the cast to the file's type; nothing was saved.");
  });
  model.change([&](model::Weights& weights) { weights.tensor(layer.name).copy_(saved_RC); });
  outcome.seconds = base::monotonic_seconds() - start;
  return outcome;
}

}  // namespace retort::sparsify
