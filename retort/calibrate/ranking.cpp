#include "retort/calibrate/ranking.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "retort/base/error.h"
#include "retort/calibrate/importance.h"
#include "retort/calibrate/walk.h"
#include "retort/loss/head_loop.h"

namespace retort::calibrate {
namespace {

using model::Tap;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::int64_t kHeadRows = 256;
constexpr std::array kReaders = {"q_proj", "o_proj", "gate_proj", "down_proj"};  // by tap

at::Tensor column_norms(const at::Tensor& weight_DI) {
  return column_squares(weight_DI).sqrt();
}

at::Tensor contributions(const InputStatistics& statistics, const at::Tensor& down_DI) {
  return statistics.maximum_I * column_norms(down_DI);
}

// sum over tokens of a_c dL/da_c, which is sum_i W[i, c] dL/dW[i, c]: what block_backward gives anyway.
struct Gradients {
  std::array<at::Tensor, kTaps.size()> columns;  // by tap

  void add(const model::BlockWeights& weights, const model::BlockWeights& gradients) {
    for (const auto tap : kTaps) {
      const auto weight = reader_of(weights, tap);
      if (!weight.defined()) continue;
      const auto part =
          (weight * reader_of(gradients, tap)).sum(at::IntArrayRef{0}, /*keepdim=*/false, at::kDouble);
      auto& sum = columns[static_cast<std::size_t>(tap)];
      sum = sum.defined() ? sum.add_(part) : part;
    }
  }
};

double count_targets(const std::vector<Batch>& batches) {
  double targets = 0;
  for (const auto& batch : batches) targets += batch.targets_N.ge(0).sum().item<double>();
  return targets;
}

at::Tensor zeros_for_gradients(const at::Tensor& unit) {
  return at::zeros(unit.sizes(),
                   unit.options().dtype(unit.scalar_type() == at::kDouble ? at::kDouble : at::kFloat));
}

class LossGradients {
 public:
  LossGradients(const model::Weights& weights, double targets)
      : weights_(weights),
        losses_(loss::make_losses({{.kind = loss::LossKind::cross_entropy}}, {})),
        targets_(targets),
        sums_(weights.config.blocks.size()) {}

  void add(const Batch& batch);
  const std::vector<Gradients>& sums() const { return sums_; }

 private:
  at::Tensor of_head(const Batch& batch, const at::Tensor& hidden_ND) const;

  const model::Weights& weights_;
  loss::Losses losses_;
  double targets_;
  std::vector<Gradients> sums_;
};

at::Tensor LossGradients::of_head(const Batch& batch, const at::Tensor& hidden_ND) const {
  const auto unit = weights_.head_on_device();
  const auto gradients = zeros_for_gradients(unit);
  const auto sums_L = at::zeros({std::ssize(losses_.on_logits)}, unit.options().dtype(at::kDouble));
  return loss::head_loop(losses_,
                         {model::head_weights(weights_.layout, unit), weights_.config.rms_norm_eps, hidden_ND,
                          model::logit_rule(weights_.config)},
                         {}, batch.targets_N, targets_, kHeadRows,
                         model::head_weights(weights_.layout, gradients), sums_L);
}

void LossGradients::add(const Batch& batch) {
  const double eps = weights_.config.rms_norm_eps;
  std::vector<at::Tensor> inputs_ND;
  auto hidden_ND = model::embedded(weights_, batch.ids_N);
  for (std::int64_t block = 0; block < std::ssize(sums_); ++block) {
    inputs_ND.push_back(hidden_ND);
    hidden_ND = model::forward_block(weights_, block, hidden_ND, batch.layout);
  }
  auto grad_ND = of_head(batch, hidden_ND);
  for (auto block = std::ssize(sums_) - 1; block >= 0; --block) {
    const auto unit = static_cast<std::size_t>(architecture::Layout::block_unit(block));
    const auto weights = model::weights_of_block(weights_, block);
    const auto scratch = zeros_for_gradients(weights_.unit_on_device(unit));
    const auto gradients = model::block_weights(weights.shape, weights_.layout.units[unit], scratch);
    const auto input_ND = std::move(inputs_ND.back());
    inputs_ND.pop_back();
    grad_ND = model::block_backward(weights, input_ND,
                                    model::block_activations(weights, eps, input_ND, batch.layout), grad_ND,
                                    batch.layout, gradients);
    sums_[static_cast<std::size_t>(block)].add(weights, gradients);
  }
}

}  // namespace

at::Tensor reader_of(const model::BlockWeights& weights, Tap tap) {
  switch (tap) {
    case Tap::qkv_input:
      return weights.qkv_XD;
    case Tap::output_input:
      return weights.output_DY;
    case Tap::gate_up_input:
      return weights.gate_up_2ID;
    case Tap::down_input:
      break;
  }
  return weights.down_DI;
}

BlockStatistics empty_statistics(const model::BlockWeights& weights) {
  BlockStatistics statistics;
  for (const auto tap : kTaps)
    if (const auto weight = reader_of(weights, tap); weight.defined())
      statistics[tap].scale_I = column_norms(weight);
  return statistics;
}

at::Tensor inactive_channels(const InputStatistics& down_input, const at::Tensor& down_DI) {
  const auto largest_I = contributions(down_input, down_DI);
  return largest_I.le(largest_I.max() * kInactiveContribution);
}

at::Tensor massive_channels(const InputStatistics& down_input, const at::Tensor& down_DI) {
  const auto largest_I = contributions(down_input, down_DI);
  const auto count =
      static_cast<std::int64_t>(std::ceil(kMassiveChannels * static_cast<double>(largest_I.numel())));
  auto massive_I = at::zeros_like(largest_I, at::kBool);
  massive_I.index_fill_(
      0, std::get<1>(largest_I.sort(/*stable=*/true, 0, /*descending=*/true)).narrow(0, 0, count), true);
  return massive_I.logical_and_(inactive_channels(down_input, down_DI).logical_not_());
}

BlockScores block_scores(const RankingOptions& options, const model::BlockWeights& weights,
                         const BlockStatistics& statistics) {
  BlockScores scores;
  const auto add_hidden = [&](const InputStatistics& input, const at::Tensor& weight_MD) {
    if (input.tokens == 0) return;
    const auto columns =
        channel_scores(score_of(options.ranking), winsorised(input, options.winsorise_quantile), weight_MD);
    scores.hidden.resize(columns.size(), 0);
    for (std::size_t i = 0; i < columns.size(); ++i) scores.hidden[i] += columns[i];
  };
  if (options.hidden)
    for (const auto tap : {Tap::qkv_input, Tap::gate_up_input})
      add_hidden(statistics[tap], reader_of(weights, tap));
  const auto& down_input = statistics[Tap::down_input];
  if (statistics[Tap::output_input].tokens > 0)
    scores.groups = group_scores(options.at(Tap::output_input), weights,
                                 winsorised(statistics[Tap::output_input], options.winsorise_quantile));
  if (down_input.tokens == 0) return scores;
  const auto cut = winsorised(down_input, options.winsorise_quantile);
  const auto inactive_I = inactive_channels(down_input, weights.down_DI),
             massive_I = massive_channels(down_input, weights.down_DI);
  const ChannelScore score = [&](const InputStatistics& of, const at::Tensor& down_DI) {
    return score_of(options.ranking)(of, down_DI)
        .to(at::kDouble)
        .masked_fill(inactive_I, -kInfinity)
        .masked_fill(massive_I, kInfinity);
  };
  scores.channels = channel_scores(score, cut, weights.down_DI);
  scores.inactive_channels = inactive_I.sum().item<std::int64_t>();
  scores.massive_channels = massive_I.sum().item<std::int64_t>();
  return scores;
}

std::vector<BlockScores> measured_scores(const model::Weights& weights, const std::vector<Batch>& batches,
                                         const RankingOptions& options, record::Observer* observer) {
  LossGradients gradients(weights, count_targets(batches));
  if (options.uses(ChannelRanking::taylor))
    for (const auto& batch : batches) gradients.add(batch);
  Walk walk(weights, batches);
  std::vector<BlockScores> scores;
  while (walk.block() < std::ssize(weights.config.blocks)) {
    const auto block = walk.block();
    const auto views = model::weights_of_block(weights, block);
    auto statistics = empty_statistics(views);
    for (const auto tap : kTaps) statistics[tap].with_products = options.at(tap) == ChannelRanking::obs;
    walk.advance([&](std::size_t batch, Tap tap, const at::Tensor& x_NC) {
      if (options.hidden || tap == Tap::output_input || tap == Tap::down_input)
        statistics[tap].add(
            x_NC, base::join("block ", block, ", input of ", kReaders[static_cast<std::size_t>(tap)]),
            batches[batch].sequence_starts());
    });
    for (const auto tap : kTaps)
      statistics[tap].gradient_I =
          gradients.sums()[static_cast<std::size_t>(block)].columns[static_cast<std::size_t>(tap)];
    scores.push_back(block_scores(options, views, statistics));
    if (observer) observer->progress("prune: blocks ranked", walk.block(), std::ssize(weights.config.blocks));
  }
  return scores;
}

UnitScores unit_scores(const std::vector<BlockScores>& scores) {
  UnitScores units;
  for (const auto& block : scores) {
    units.channels.push_back(block.channels);
    units.groups.push_back(block.groups);
    units.hidden.resize(std::max(units.hidden.size(), block.hidden.size()), 0);
    for (std::size_t i = 0; i < block.hidden.size(); ++i) units.hidden[i] += block.hidden[i];
  }
  return units;
}

std::vector<double>& scores_of(UnitScores& scores, architecture::PartKind kind, std::int64_t block) {
  const auto of_block = [&](auto& lists) -> std::vector<double>& {
    lists.resize(std::max(lists.size(), static_cast<std::size_t>(block) + 1));
    return lists[static_cast<std::size_t>(block)];
  };
  switch (kind) {
    case architecture::PartKind::kv_groups:
      return of_block(scores.groups);
    case architecture::PartKind::channels:
      return of_block(scores.channels);
    case architecture::PartKind::hidden:
      return scores.hidden;
  }
  throw base::InternalError("no scores of such a part");
}

const std::vector<double>& scores_of(const UnitScores& scores, architecture::PartKind kind,
                                     std::int64_t block) {
  switch (kind) {
    case architecture::PartKind::kv_groups:
      return scores.groups.at(static_cast<std::size_t>(block));
    case architecture::PartKind::channels:
      return scores.channels.at(static_cast<std::size_t>(block));
    case architecture::PartKind::hidden:
      return scores.hidden;
  }
  throw base::InternalError("no scores of such a part");
}

}  // namespace retort::calibrate
