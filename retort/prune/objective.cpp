#include "retort/prune/objective.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "retort/base/error.h"

namespace retort::prune {
namespace {

constexpr std::int64_t kChunkElements = std::int64_t{1} << 22;  // of logits at a time

std::int64_t num_blocks(const model::Weights& weights) {
  return static_cast<std::int64_t>(weights.config.blocks.size());
}

// 1 for what is kept; undefined when all is.
at::Tensor mask_of(const std::vector<std::int64_t>& kept, std::int64_t width,
                   const at::TensorOptions& options) {
  if (std::ssize(kept) == width) return {};
  auto mask_I = at::zeros({width}, options);
  mask_I.index_fill_(0, model::index_tensor(kept, options.device()), 1);
  return mask_I;
}

// What has passed the blocks up to `block`; -1: the embedding.
void require_finite(const at::Tensor& hidden_ND, std::int64_t block) {
  base::require<base::ValidationError>(
      hidden_ND.isfinite().all().item<bool>(), block < 0 ? "embedding" : base::join("block ", block),
      ": its output on the calibration text is not finite (NaN or infinity); the model is damaged or its "
      "compute type too narrow, use float32.");
}

}  // namespace

// A candidate as the loop over blocks uses it, and what to do on the way.
struct Evaluator::Pass {
  std::vector<bool> keeps, attends, transforms;  // per block of the input: anything, attention, MLP
  std::vector<at::Tensor> masks_I, masks_Y;      // of channels and heads; undefined: none is dropped
  at::Tensor mask_D;                             // of hidden features
  std::function<void(std::int64_t block, const at::Tensor& x_ND)> before;  // every block, kept or not

  Pass(const model::Weights& input, const Candidate& candidate) {
    const auto options = input.units.front().options();
    for (std::int64_t block = 0; block < num_blocks(input); ++block) {
      const auto* kept = candidate.find(block);
      keeps.push_back(kept != nullptr);
      attends.push_back(candidate.attends(block));
      transforms.push_back(kept != nullptr && !kept->empty());
      const auto& shape = input.config.blocks[static_cast<std::size_t>(block)];
      masks_I.push_back(kept ? mask_of(*kept, mlp_width(shape), options) : at::Tensor());
      masks_Y.push_back(at::Tensor());
      if (const auto groups = mask_of(kept_groups(input.config, candidate, block), kv_groups(shape), options);
          kept && shape.attention && groups.defined())
        masks_Y.back() = groups.repeat_interleave(shape.attention->num_heads / shape.attention->num_kv_heads *
                                                  shape.attention->head_dim);
    }
    if (!candidate.hidden.empty()) mask_D = mask_of(candidate.hidden, input.config.hidden_size, options);
  }
};

Evaluator::Evaluator(const model::Weights& input, const std::vector<CalibrationDomain>& domains,
                     const EvaluatorOptions& options)
    : input_(input),
      weights_(options.weights),
      batches_(
          calibration_batches(domains, input.config, input.units.front().device(), options.batch_tokens)),
      scorer_(input.config, input.layout, input.units[static_cast<std::size_t>(input.layout.head_unit())]) {
  for (const auto& domain : domains) domain_names_.push_back(domain.name);
  plan_cache(options.cache_bytes);
  settle(whole(input.config));
  const Pass pass(input_, current_);
  for (std::size_t batch = 0; batch < batches_.size(); ++batch) {
    const bool goes_on = batch > 0 && batches_[batch].domain == batches_[batch - 1].domain;
    place_.push_back(goes_on ? place_.back() + 1 : 0);
    teacher_hidden_.push_back(output(batch, pass, num_blocks(input_)));
    teacher_nll_.push_back(score(batch, teacher_hidden_.back(), false).nll);
  }
}

void Evaluator::plan_cache(std::int64_t cache_bytes) {
  std::int64_t tokens = 0;
  for (const auto& batch : batches_) tokens += batch.layout.tokens();
  const auto bytes =
      tokens * input_.config.hidden_size * static_cast<std::int64_t>(input_.units.front().element_size());
  const auto blocks = num_blocks(input_), fitting = cache_bytes / std::max<std::int64_t>(bytes, 1);
  stride_ = fitting < 1 ? blocks : std::max<std::int64_t>(1, (blocks + fitting - 1) / fitting);
}

std::int64_t Evaluator::first_change(const Candidate& candidate) const {
  if (current_.hidden != candidate.hidden) return 0;
  for (std::int64_t block = 0; block < num_blocks(input_); ++block) {
    const auto *now = current_.find(block), *then = candidate.find(block);
    if ((now == nullptr) != (then == nullptr) || (now && *now != *then)) return block;
    if (now && kept_groups(input_.config, current_, block) != kept_groups(input_.config, candidate, block))
      return block;
  }
  return num_blocks(input_);
}

// The output of the last block, beginning at the last kept state at or before block `begin`.
at::Tensor Evaluator::output(std::size_t batch, const Pass& pass, std::int64_t begin) const {
  at::Tensor hidden_ND;
  std::int64_t block = std::min(begin, num_blocks(input_) - 1) / stride_ * stride_;
  if (block > 0)
    hidden_ND = kept_[batch][static_cast<std::size_t>(block / stride_)];
  else
    hidden_ND = embedded(input_, batches_[batch]);
  if (block == 0 && pass.mask_D.defined()) hidden_ND.mul_(pass.mask_D);
  for (; block < num_blocks(input_); ++block) {
    const auto i = static_cast<std::size_t>(block);
    if (pass.before) pass.before(block, hidden_ND);
    if (!pass.keeps[i]) continue;
    const model::BlockHooks hooks{
        .channel_mask_I = pass.masks_I[i], .head_mask_Y = pass.masks_Y[i], .hidden_mask_D = pass.mask_D};
    auto weights = weights_of_block(input_, block);
    if (!pass.attends[i]) weights.shape.attention.reset();
    if (!pass.transforms[i]) weights.down_DI = at::Tensor();
    hidden_ND = model::block_forward(weights, input_.config.rms_norm_eps, hidden_ND, batches_[batch].layout,
                                     nullptr, &hooks);
  }
  return hidden_ND;
}

void Evaluator::settle(const Candidate& candidate) {
  const auto blocks = num_blocks(input_);
  std::vector<std::vector<at::Tensor>> kept(batches_.size());
  Pass pass(input_, candidate);
  for (std::size_t batch = 0; batch < batches_.size(); ++batch) {
    kept[batch].resize(static_cast<std::size_t>((blocks - 1) / stride_ + 1));
    pass.before = [&](std::int64_t block, const at::Tensor& x_ND) {
      require_finite(x_ND, block - 1);
      if (block > 0 && block % stride_ == 0) kept[batch][static_cast<std::size_t>(block / stride_)] = x_ND;
    };
    require_finite(output(batch, pass, 0), blocks - 1);
  }
  kept_ = std::move(kept);
  current_ = candidate;
}

eval::ScoreSums Evaluator::score(std::size_t batch, const at::Tensor& hidden_ND, bool with_teacher) const {
  const auto rows = std::clamp<std::int64_t>(kChunkElements / scorer_.vocab_size(), 16, 1024);
  return eval::score_hidden(scorer_, hidden_ND, with_teacher ? &scorer_ : nullptr,
                            with_teacher ? teacher_hidden_[batch] : at::Tensor(), batches_[batch].targets_N,
                            rows);
}

Evaluation Evaluator::evaluation_of(const std::vector<eval::ScoreSums>& sums,
                                    const std::vector<double>& teacher_nll) const {
  Evaluation result;
  const auto count = static_cast<double>(sums.size());
  for (std::size_t domain = 0; domain < sums.size(); ++domain) {
    Cost cost;
    const auto targets = static_cast<double>(sums[domain].targets);
    cost.delta_log_perplexity = (sums[domain].nll - teacher_nll[domain]) / targets;
    cost.kl = sums[domain].kl / targets;
    cost.objective = weights_.perplexity * cost.delta_log_perplexity + weights_.kl * cost.kl;
    base::require<base::ValidationError>(std::isfinite(cost.objective),
                                         "prune: the objective of a candidate on '", domain_names_[domain],
                                         "' is not finite; the model is damaged, evaluate it first.");
    if (domain > 0 && cost.objective > result.domains[result.worst_domain].objective)
      result.worst_domain = domain;
    result.mean.delta_log_perplexity += cost.delta_log_perplexity / count;
    result.mean.kl += cost.kl / count;
    result.mean.objective += cost.objective / count;
    result.domains.push_back(cost);
  }
  return result;
}

Evaluation Evaluator::evaluate(const Candidate& candidate, std::int64_t batches) const {
  const Pass pass(input_, candidate);
  const auto begin = first_change(candidate);
  std::vector<eval::ScoreSums> sums(domain_names_.size());
  std::vector<double> teacher_nll(domain_names_.size(), 0);
  for (std::size_t batch = 0; batch < batches_.size(); ++batch) {
    if (place_[batch] >= batches) continue;
    sums[batches_[batch].domain].add(score(batch, output(batch, pass, begin), true));
    teacher_nll[batches_[batch].domain] += teacher_nll_[batch];
  }
  return evaluation_of(sums, teacher_nll);
}

std::int64_t Evaluator::tokens(std::int64_t batches) const {
  std::int64_t sum = 0;
  for (std::size_t batch = 0; batch < batches_.size(); ++batch)
    if (place_[batch] < batches) sum += batches_[batch].layout.tokens();
  return sum;
}

std::int64_t Evaluator::most_batches() const {
  return *std::max_element(place_.begin(), place_.end()) + 1;
}

double Evaluator::input_nll() const {
  return std::accumulate(teacher_nll_.begin(), teacher_nll_.end(), 0.0);
}

double Evaluator::difference(const Candidate& candidate, const model::Weights& sliced) const {
  const Pass pass(input_, candidate);
  double worst = 0;
  for (std::size_t batch = 0; batch < batches_.size(); ++batch) {
    if (batch > 0 && batches_[batch].domain == batches_[batch - 1].domain) continue;
    auto masked_ND = output(batch, pass, 0);
    if (pass.mask_D.defined())
      masked_ND = masked_ND.index_select(1, model::index_tensor(candidate.hidden, masked_ND.device()));
    auto hidden_ND = embedded(sliced, batches_[batch]);
    for (std::int64_t block = 0; block < num_blocks(sliced); ++block)
      hidden_ND = model::block_forward(weights_of_block(sliced, block), sliced.config.rms_norm_eps, hidden_ND,
                                       batches_[batch].layout);
    const auto largest = masked_ND.abs().max().item<double>();
    worst = std::max(worst, (masked_ND - hidden_ND).abs().max().item<double>() / largest);
  }
  return worst;
}

}  // namespace retort::prune
