#include "retort/compress/column_order.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

#include "retort/base/random.h"
#include "retort/compress/assignment.h"
#include "retort/compress/group_mask.h"

namespace retort::compress {
namespace {

constexpr std::int64_t kGroupsAtOnce = 512;  // an assignment takes the third power of it
constexpr std::int64_t kMostRounds = 12;     // twice as many gain a tenth more
constexpr double kLeastGain = 2e-4;          // of the share that is lost, in a round over all places

// Groups of columns as [G, M], which trade columns.
class Groups {
 public:
  Groups(const at::Tensor& score_RC, const model::Pattern& pattern, at::Tensor columns_GM)
      : score_CR_(score_RC.t().contiguous()), pattern_(pattern), columns_GM_(std::move(columns_GM)) {}

  // The groups `chosen_S` give up the column at their place in `places_S` and take the best of what was given
  // up.
  void trade(const at::Tensor& chosen_S, const at::Tensor& places_S) {
    const auto columns_SM = columns_GM_.index_select(0, chosen_S);
    const auto given_S = columns_SM.gather(1, places_S.unsqueeze(1)).squeeze(1);
    const auto others_SM = columns_SM.scatter(1, places_S.unsqueeze(1), -1);
    const auto best_S = assigned(score_CR_.index_select(0, given_S), thresholds(others_SM));
    const auto taken_S = given_S.index_select(0, best_S);
    columns_GM_.index_copy_(0, chosen_S, columns_SM.scatter(1, places_S.unsqueeze(1), taken_S.unsqueeze(1)));
  }

  const at::Tensor& columns_GM() const { return columns_GM_; }

 private:
  // What a column must exceed in a row to stay there: the score that falls out for it.  -1 marks a free
  // place.
  at::Tensor thresholds(const at::Tensor& others_SM) const {
    const auto free_SM1 = others_SM.lt(0).unsqueeze(2);
    const auto score_SMR = score_CR_.index_select(0, others_SM.clamp_min(0).flatten())
                               .unflatten(0, others_SM.sizes())
                               .masked_fill(free_SM1, -1);
    return std::get<0>(score_SMR.topk(pattern_.kept, /*dim=*/1)).select(1, pattern_.kept - 1);
  }

  // Group s takes column result[s].  A column adds sum of max(0, score - threshold), which is half of the
  // absolute difference plus half of the difference; only the first part depends on who takes what.
  static at::Tensor assigned(const at::Tensor& score_SR, const at::Tensor& threshold_SR) {
    const auto cost_SS = at::cdist(threshold_SR, score_SR, /*p=*/1).neg_().to(at::kFloat).cpu().contiguous();
    const auto columns = least_cost_assignment(
        {cost_SS.const_data_ptr<float>(), static_cast<std::size_t>(cost_SS.numel())}, cost_SS.size(0));
    return at::tensor(columns, at::kLong).to(score_SR.device());
  }

  at::Tensor score_CR_;
  model::Pattern pattern_;
  at::Tensor columns_GM_;
};

// Columns with the highest sums first, one to each group, and back again.
at::Tensor dealt(const at::Tensor& score_RC, const model::Pattern& pattern) {
  const auto order_MG =
      std::get<1>(score_RC.sum(at::IntArrayRef{0}).sort(/*stable=*/true, /*dim=*/0, /*descending=*/true))
          .unflatten(0, {pattern.group, -1})
          .clone();
  for (std::int64_t place = 1; place < pattern.group; place += 2)
    order_MG.select(0, place).copy_(order_MG.select(0, place).flip(0).clone());
  return order_MG.t().contiguous();
}

at::Tensor random_places(std::int64_t count, std::int64_t group, base::Random& random, at::Device device) {
  std::vector<std::int64_t> places(static_cast<std::size_t>(count));
  for (auto& place : places)
    place = static_cast<std::int64_t>(random.next_below(static_cast<std::uint64_t>(group)));
  return at::tensor(places, at::kLong).to(device);
}

// Every group trades once.
void trade_all(Groups& groups, std::int64_t group, base::Random& random, at::Device device) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(groups.columns_GM().size(0)));
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int64_t>(i);
  base::shuffle(order, random);
  for (const auto& chosen_S : at::tensor(order, at::kLong).to(device).split(kGroupsAtOnce))
    groups.trade(chosen_S, random_places(chosen_S.size(0), group, random, device));
}

}  // namespace

double kept_share(const at::Tensor& score_RC, const model::Pattern& pattern) {
  const auto sum = [](const at::Tensor& score) { return score.sum(at::kDouble).item<double>(); };
  const double all = sum(score_RC);
  return all > 0 ? sum(score_RC * highest_of_groups(score_RC, pattern)) / all : 1;
}

std::vector<std::int64_t> column_order(const at::Tensor& score_RC, const model::Pattern& pattern) {
  const auto score = score_RC.to(at::kFloat);
  const auto share = [&](const at::Tensor& order_C) {
    return kept_share(score.index_select(1, order_C), pattern);
  };
  const auto present_C = at::arange(score.size(1), score.options().dtype(at::kLong));
  Groups groups(score, pattern, dealt(score, pattern));
  base::Random random(/*seed=*/0, base::stream_of("column order"));
  double reached = share(groups.columns_GM().flatten());
  for (std::int64_t round = 1; round <= kMostRounds; ++round) {
    trade_all(groups, pattern.group, random, score.device());
    if (round % pattern.group != 0 && round < kMostRounds) continue;
    const double before = std::exchange(reached, share(groups.columns_GM().flatten()));
    if (reached - before < kLeastGain * (1 - reached)) break;
  }
  auto order_C = groups.columns_GM().flatten();
  if (reached < share(present_C)) order_C = present_C;
  order_C = order_C.cpu().contiguous();
  return {order_C.const_data_ptr<std::int64_t>(), order_C.const_data_ptr<std::int64_t>() + order_C.numel()};
}

}  // namespace retort::compress
