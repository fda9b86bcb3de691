#include "retort/prune/compensate.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <set>

#include "retort/base/error.h"
#include "retort/eval/score.h"
#include "retort/model/dtype.h"
#include "retort/prune/stop.h"

namespace retort::prune {
namespace {

using architecture::Layout;
using architecture::Role;

constexpr std::int64_t kGuardEvery = 5;

bool every_domain_has_one(const std::vector<CalibrationBatch>& batches, const std::vector<bool>& guards) {
  std::set<std::size_t> domains, judged;
  for (std::size_t i = 0; i < batches.size(); ++i) {
    domains.insert(batches[i].domain);
    if (guards[i]) judged.insert(batches[i].domain);
  }
  return judged == domains;
}

// X'^T X' and X^T X' over tokens.
struct Sums {
  at::Tensor kept_KK, cross_IK;

  void add(const at::Tensor& x_NI, const at::Tensor& kept_NK) {
    const auto wide_NK = kept_NK.to(at::kDouble), products_KK = at::mm(wide_NK.t(), wide_NK);
    const auto products_IK = at::mm(x_NI.to(at::kDouble).t(), wide_NK);
    kept_KK = kept_KK.defined() ? kept_KK.add_(products_KK) : products_KK;
    cross_IK = cross_IK.defined() ? cross_IK.add_(products_IK) : products_IK;
  }
  // ||W' X' - W X||^2 without the part that W' does not change.
  double error(const at::Tensor& weight_DI, const at::Tensor& fitted_DK) const {
    const auto products_DK = at::mm(fitted_DK, kept_KK) - 2 * at::mm(weight_DI, cross_IK);
    return (products_DK * fitted_DK).sum().item<double>();
  }
};

at::Tensor fitted(const at::Tensor& weight_DI, const at::Tensor& kept_DK, const Sums& sums,
                  double dampening) {
  const auto gap_DK = at::mm(weight_DI, sums.cross_IK) - at::mm(kept_DK, sums.kept_KK);
  auto damped_KK = sums.kept_KK.clone();
  auto diagonal_K = damped_KK.diagonal();
  // Each input by its own square: by the mean, one massive channel would hold all others where they are.
  diagonal_K.mul_(1 + dampening).add_(1e-300);
  const auto [lower_KK, info] = at::linalg_cholesky_ex(damped_KK);
  if (info.item<int>() != 0) return {};
  return kept_DK + at::cholesky_solve(gap_DK.t(), lower_KK).t();
}

class Compensation {
 public:
  Compensation(const model::Weights& input, const Candidate& candidate, model::Weights& sliced,
               const std::vector<CalibrationDomain>& domains, const CompensationOptions& options,
               record::Observer& observer)
      : input_(input),
        candidate_(candidate),
        sliced_(sliced),
        plain_(model::converted(sliced, sliced.units.front().scalar_type())),
        options_(options),
        observer_(observer),
        batches_(
            calibration_batches(domains, input.config, input.units.front().device(), options.batch_tokens)) {}

  base::Json run();

 private:
  // The hidden states of one model, per batch.
  struct Stream {
    const model::Weights& weights;
    std::vector<at::Tensor> hidden_ND;
  };
  void start(Stream& stream) const {
    for (const auto& batch : batches_) stream.hidden_ND.push_back(embedded(stream.weights, batch));
  }
  at::Tensor block_output(const Stream& stream, std::int64_t block, std::size_t batch,
                          const model::BlockHooks* hooks = nullptr) const {
    return model::block_forward(weights_of_block(stream.weights, block), stream.weights.config.rms_norm_eps,
                                stream.hidden_ND[batch], batches_[batch].layout, nullptr, hooks);
  }
  at::Tensor inputs_of(Role role, const Stream& stream, std::int64_t block, std::size_t batch) const;
  void advance(Stream& stream, std::int64_t block) const {
    for (std::size_t i = 0; i < batches_.size(); ++i) stream.hidden_ND[i] = block_output(stream, block, i);
  }
  bool wanted(Role role, std::int64_t block, std::int64_t position) const;
  at::Tensor input_weight(Role role, std::int64_t block) const;
  void fit(Role role, const Stream& dense, const Stream& changed, std::int64_t block, std::int64_t position);
  double guard_objective(const Stream& dense, const Stream& other) const;

  const model::Weights& input_;
  const Candidate& candidate_;
  model::Weights& sliced_;
  model::Weights plain_;
  const CompensationOptions& options_;
  record::Observer& observer_;
  std::vector<CalibrationBatch> batches_;
  std::vector<bool> guards_;
  base::Json layers_ = base::Json::array();
};

at::Tensor Compensation::inputs_of(Role role, const Stream& stream, std::int64_t block,
                                   std::size_t batch) const {
  const auto wanted = role == Role::output ? model::Tap::output_input : model::Tap::down_input;
  at::Tensor inputs_NI;
  const model::BlockHooks hooks{.tap = [&](model::Tap tap, const at::Tensor& x_NC) {
    if (tap == wanted) inputs_NI = x_NC;
  }};
  block_output(stream, block, batch, &hooks);
  return inputs_NI;
}

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
  const auto weights = weights_of_block(input_, block);
  auto weight_DI = (role == Role::output ? weights.output_DY : weights.down_DI).to(at::kDouble);
  if (candidate_.hidden.empty()) return weight_DI;
  return weight_DI.index_select(0, model::index_tensor(candidate_.hidden, weight_DI.device()));
}

void Compensation::fit(Role role, const Stream& dense, const Stream& changed, std::int64_t block,
                       std::int64_t position) {
  const auto unit = static_cast<std::size_t>(Layout::block_unit(position));
  const auto& tensor = *sliced_.layout.units[unit].find(role);
  Sums fit_sums, guard_sums;
  for (std::size_t i = 0; i < batches_.size(); ++i)
    (guards_[i] ? guard_sums : fit_sums)
        .add(inputs_of(role, dense, block, i), inputs_of(role, changed, position, i));
  base::require<base::ValidationError>(
      fit_sums.cross_IK.isfinite().all().item<bool>(), tensor.name,
      ": its inputs on the calibration text are not finite (NaN or infinity); the model is damaged.");
  auto weight_DK = sliced_.tensor(unit, tensor);
  const auto whole_DI = input_weight(role, block);
  const auto kept_DK = weight_DK.to(at::kDouble);
  const auto solution_DK = fitted(whole_DI, kept_DK, fit_sums, options_.dampening_fraction);
  // Where even the kept channels cannot be told apart, the layer stays as it is, and the report says so.
  const auto saved_DK =
      solution_DK.defined() ? solution_DK.to(model::scalar_type(sliced_.file_dtype)) : kept_DK;
  const double before = guard_sums.error(whole_DI, kept_DK),
               after = guard_sums.error(whole_DI, saved_DK.to(at::kDouble));
  if (after < before) weight_DK.copy_(saved_DK);
  layers_.push_back({{"name", tensor.name}, {"kept", after < before}, {"held_out_gain", before - after}});
}

// f of objective.h on the guards, domains with equal weights.
double Compensation::guard_objective(const Stream& dense, const Stream& other) const {
  const auto scorer_of = [](const model::Weights& weights) {
    return eval::HeadScorer(weights.config, weights.layout,
                            weights.units[static_cast<std::size_t>(weights.layout.head_unit())]);
  };
  const auto teacher = scorer_of(dense.weights), scorer = scorer_of(other.weights);
  std::vector<eval::ScoreSums> sums;
  for (std::size_t i = 0; i < batches_.size(); ++i) {
    if (!guards_[i]) continue;
    sums.resize(std::max(sums.size(), batches_[i].domain + 1));
    sums[batches_[i].domain].add(eval::score_hidden(scorer, other.hidden_ND[i], &teacher, dense.hidden_ND[i],
                                                    batches_[i].targets_N, options_.batch_tokens));
  }
  double objective = 0;
  for (const auto& sum : sums)
    objective +=
        (options_.objective.perplexity * (sum.nll - sum.teacher_nll) + options_.objective.kl * sum.kl) /
        static_cast<double>(std::max<std::int64_t>(sum.targets, 1));
  return objective / static_cast<double>(sums.size());
}

base::Json Compensation::run() {
  guards_ = guard_batches(batches_, kGuardEvery);
  if (!every_domain_has_one(batches_, guards_)) {
    observer_.message(
        record::Level::warning,
        "prune: no compensation, because a source gave less than two batches of calibration text, one "
        "to fit and one to judge; raise calibration_tokens.");
    return nullptr;
  }
  Stream dense{input_, {}}, changed{sliced_, {}}, plain{plain_, {}};
  for (auto* stream : {&dense, &changed, &plain}) start(*stream);
  std::int64_t position = 0;
  for (std::int64_t block = 0; block < std::ssize(input_.config.blocks); ++block) {
    stop_if_asked(observer_, "prune", "the candidates measured so far");
    if (candidate_.find(block)) {
      for (const auto role : {Role::output, Role::down})
        if (wanted(role, block, position)) fit(role, dense, changed, block, position);
      advance(changed, position);
      advance(plain, position++);
    }
    advance(dense, block);
    observer_.progress("prune: blocks compensated", block + 1, std::ssize(input_.config.blocks));
  }
  if (layers_.empty()) return nullptr;
  const double before = guard_objective(dense, plain), after = guard_objective(dense, changed);
  if (!(after < before)) sliced_.units = plain_.units;
  return {{"kept", after < before},
          {"held_out_objective_before", before},
          {"held_out_objective_after", after},
          {"layers", layers_}};
}

}  // namespace

base::Json compensate(const model::Weights& input, const Candidate& candidate, model::Weights& sliced,
                      const std::vector<CalibrationDomain>& domains, const CompensationOptions& options,
                      record::Observer& observer) {
  return Compensation(input, candidate, sliced, domains, options, observer).run();
}

}  // namespace retort::prune
