#include "retort/compress/compensate.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "retort/base/error.h"
#include "retort/calibrate/loss_increase.h"
#include "retort/calibrate/walk.h"
#include "retort/compress/readers.h"
#include "retort/model/dtype.h"
#include "retort/model/forward.h"
#include "retort/model/stored_tensors.h"
#include "retort/record/keys.h"
#include "retort/record/stopped.h"

namespace retort::compress {
namespace {

using architecture::Layout;
using architecture::Role;
using calibrate::Walk;

struct Sums {
  LeastSquaresSums fit, guard;
};

class Compensation {
 public:
  Compensation(const model::Weights& input, const architecture::Kept& candidate, model::Weights& sliced,
               const FitSources& sources, const CompensationOptions& options, record::Observer& observer)
      : input_(input),
        candidate_(candidate),
        sliced_(sliced),
        plain_(model::converted(sliced, sliced.units.front().scalar_type())),
        options_(options),
        observer_(observer),
        text_(fit_text(sources, input.config, input.options().device(), options.batch_tokens)),
        choosing_(text_.batches.begin() + static_cast<std::ptrdiff_t>(text_.fitted), text_.batches.end()) {}

  std::optional<CompensationOutcome> run();

 private:
  bool wanted(Role role, std::int64_t block, std::int64_t position) const;
  at::Tensor input_weight(Role role, std::int64_t block) const;
  void take(architecture::Half half, Walk& dense, Walk& changed);
  void fit(Role role, const Walk& dense, const Walk& changed, const Sums& sums);
  double objective(const Walk& dense, const Walk& other, std::size_t first) const;

  const model::Weights& input_;
  const architecture::Kept& candidate_;
  model::Weights& sliced_;
  model::Weights plain_;
  const CompensationOptions& options_;
  record::Observer& observer_;
  FitText text_;
  std::vector<calibrate::Batch> choosing_;  // the last ones of the text
  std::vector<FittedLayer> layers_;
};

// Dense layers that lost inputs or outputs; a fitted layer would not stay sparse.
bool Compensation::wanted(Role role, std::int64_t block, std::int64_t position) const {
  const auto& layout = sliced_.layout.units[static_cast<std::size_t>(Layout::block_unit(position))];
  const auto* tensor = layout.find(role);
  const auto& sparse = sliced_.lineage.sparse_layers;
  if (!tensor || std::find(sparse.begin(), sparse.end(), tensor->name) != sparse.end()) return false;
  const auto* original = input_.layout.units[static_cast<std::size_t>(Layout::block_unit(block))].find(role);
  return tensor->shape != original->shape;
}

// Of the larger model, without the outputs that are gone.
at::Tensor Compensation::input_weight(Role role, std::int64_t block) const {
  const auto weights = model::weights_of_block(input_, block);
  auto weight_DI = (role == Role::output ? weights.output_DY : weights.down_DI).to(at::kDouble);
  if (std::ssize(candidate_.hidden) == input_.config.hidden_size) return weight_DI;
  return weight_DI.index_select(0, model::index_tensor(candidate_.hidden, weight_DI.device()));
}

// `dense` and `changed` stand before the same block, each in its own numbering.
void Compensation::fit(Role role, const Walk& dense, const Walk& changed, const Sums& sums) {
  const auto block = dense.block(), position = changed.block();
  const auto unit = static_cast<std::size_t>(Layout::block_unit(position));
  const auto& tensor = *sliced_.layout.units[unit].find(role);
  require_finite_inputs(sums.fit.cross_IK, tensor.name);
  auto weight_DK = sliced_.tensor(unit, tensor);
  const auto whole_DI = input_weight(role, block);
  const auto kept_DK = sliced_.on_device(weight_DK).to(at::kDouble);
  const auto solution_DK = least_squares(
      whole_DI, kept_DK, sums.fit,
      options_.dampening_fraction.value_or(dampening_of_fit(kept_DK.size(1), text_.fitted_tokens)));
  // Where even the kept channels cannot be told apart, the layer stays as it is, and the report says so.
  const auto saved_DK =
      solution_DK.defined() ? solution_DK.to(model::scalar_type(sliced_.file_dtype)) : kept_DK;
  const double gain = sums.guard.gain(whole_DI, kept_DK, saved_DK.to(at::kDouble));
  if (gain > 0) {
    weight_DK.copy_(saved_DK);
    sliced_.blocks_changed();
  }
  layers_.push_back(
      {.name = tensor.name, .kept = gain > 0, .held_out_gain = gain, .singular = !solution_DK.defined()});
}

// Takes both models through a half of the block that they stand before, and fits its last layer on the way,
// so that neither computes anything twice.
void Compensation::take(architecture::Half half, Walk& dense, Walk& changed) {
  const bool stays = candidate_.find(dense.block());
  const bool fits = stays && wanted(reader_of(half), dense.block(), changed.block());
  Sums sums;
  model::StoredTensors inner(options_.hidden_scratch);
  for (std::size_t i = 0; i < text_.batches.size(); ++i) {
    const auto dense_NC = dense.half_inner_NC(i, half);
    dense.finish_half(i, half, dense_NC);
    if (!stays) continue;
    const auto changed_NC = changed.half_inner_NC(i, half);
    if (!fits) {
      changed.finish_half(i, half, changed_NC);
      continue;
    }
    (text_.chooses(i) ? sums.guard : sums.fit).add(dense_NC, changed_NC);
    inner.set(i, changed_NC);
  }
  if (!fits) return;
  fit(reader_of(half), dense, changed, sums);
  for (std::size_t i = 0; i < text_.batches.size(); ++i) changed.finish_half(i, half, inner.get(i));
}

// The loss increase on what chooses, whose batches are those of `other` from `first` on.
double Compensation::objective(const Walk& dense, const Walk& other, std::size_t first) const {
  const auto scorer_of = [](const model::Weights& weights) {
    return eval::HeadScorer(weights.config, weights.layout, weights.head_on_device());
  };
  const auto teacher = scorer_of(dense.weights()), scorer = scorer_of(other.weights());
  std::vector<calibrate::DocumentSums> documents;
  for (std::size_t i = 0; i < choosing_.size(); ++i)
    calibrate::add_documents(choosing_[i], scorer, other.hidden_ND(first + i), teacher,
                             dense.hidden_ND(text_.fitted + i), options_.head_rows, documents);
  return calibrate::evaluation_of(documents, options_.objective).mean.objective;
}

std::optional<CompensationOutcome> Compensation::run() {
  Walk dense(input_, text_.batches, options_.hidden_scratch);
  Walk changed(sliced_, text_.batches, options_.hidden_scratch);
  Walk plain(plain_, choosing_, options_.hidden_scratch);
  const auto blocks = std::ssize(input_.config.blocks);
  while (dense.block() < blocks) {
    record::stop_if_asked(observer_, "prune", "the candidates measured so far");
    for (const auto half : architecture::kHalves) take(half, dense, changed);
    if (candidate_.find(dense.block())) {
      changed.next_block();
      plain.advance();
    }
    dense.next_block();
    observer_.progress("prune: blocks compensated", dense.block(), blocks);
  }
  if (layers_.empty()) return {};
  const double before = objective(dense, plain, 0), after = objective(dense, changed, text_.fitted);
  if (!(after < before)) {
    sliced_.units = plain_.units;
    sliced_.blocks_changed();
  }
  return CompensationOutcome{.kept = after < before,
                             .held_out_objective_before = before,
                             .held_out_objective_after = after,
                             .layers = std::move(layers_)};
}

}  // namespace

base::Json to_json(const CompensationOutcome& outcome) {
  namespace keys = record::keys;
  base::Json layers = base::Json::array();
  for (const auto& layer : outcome.layers)
    layers.push_back({{keys::kName, layer.name},
                      {keys::kKept, layer.kept},
                      {keys::kHeldOutGain, layer.held_out_gain},
                      {keys::kSingular, layer.singular}});
  return {{keys::kKept, outcome.kept},
          {keys::kEachAlone, outcome.each_alone},
          {keys::kHeldOutObjectiveBefore, outcome.held_out_objective_before},
          {keys::kHeldOutObjectiveAfter, outcome.held_out_objective_after},
          {keys::kLayers, std::move(layers)}};
}

std::optional<CompensationOutcome> compensate(const model::Weights& input,
                                              const architecture::Kept& candidate, model::Weights& sliced,
                                              const FitSources& sources, const CompensationOptions& options,
                                              record::Observer& observer) {
  return Compensation(input, candidate, sliced, sources, options, observer).run();
}

}  // namespace retort::compress
