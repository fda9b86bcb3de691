#include "retort/train/stragglers.h"

#include <algorithm>
#include <cstdio>
#include <numeric>

#include "retort/base/error.h"

namespace retort::train {
namespace {

// An update is not work on sequences.
constexpr shard::Phase kOwnWork[] = {shard::Phase::student_forward, shard::Phase::teacher_forward,
                                     shard::Phase::hidden_losses, shard::Phase::head, shard::Phase::backward};

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace

double Stragglers::sequences_of(int rank) const {
  return window_.back()[static_cast<std::size_t>(rank)].sequences;
}

double Stragglers::median_of(int rank, shard::Phase phase) const {
  std::vector<double> values;
  for (const auto& step : window_)
    values.push_back(step[static_cast<std::size_t>(rank)].seconds[static_cast<std::size_t>(phase)]);
  return median(std::move(values)) / sequences_of(rank);
}

std::vector<int> Stragglers::working_ranks() const {
  std::vector<int> working;
  for (int rank = 0; rank < ranks_; ++rank)
    if (sequences_of(rank) > 0) working.push_back(rank);
  return working;
}

double Stragglers::others_median(std::span<const int> working, int rank, shard::Phase phase) const {
  std::vector<double> values;
  for (const int other : working)
    if (other != rank) values.push_back(median_of(other, phase));
  return median(std::move(values));
}

std::optional<Straggler> Stragglers::slow_in_window(std::span<const int> working, int rank) const {
  if (working.size() < 2) return {};  // there is none to compare it with
  const auto& last = window_.back()[static_cast<std::size_t>(rank)];
  const double step_seconds = std::accumulate(last.seconds.begin(), last.seconds.end(), 0.0);
  for (const auto phase : kOwnWork) {
    const double own = median_of(rank, phase), others = others_median(working, rank, phase);
    if (own > kSlower * others && (own - others) * last.sequences > kShare * step_seconds)
      return Straggler{rank, phase, own, others};
  }
  return {};
}

std::vector<Straggler> Stragglers::add(std::span<const RankStep> of_ranks) {
  window_.emplace_back(of_ranks.begin(), of_ranks.end());
  if (window_.size() < kWindow) return {};
  std::vector<Straggler> found;
  const auto working = working_ranks();
  for (const int rank : working) {
    const auto index = static_cast<std::size_t>(rank);
    const auto slow = slow_in_window(working, rank);
    if (slow && suspects_[index] && !told_[index]) {
      told_[index] = true;
      found.push_back(*slow);
    }
    suspects_[index] = slow.has_value();
  }
  window_.clear();
  return found;
}

std::string described(const Straggler& straggler) {
  char numbers[80];
  std::snprintf(numbers, sizeof numbers, "%.3f s a sequence, %.1f times as long as", straggler.seconds,
                straggler.seconds / std::max(1e-9, straggler.others_seconds));
  return base::join("rank ", straggler.rank, " is slow: ", base::word(straggler.phase), " takes ", numbers,
                    " on the others; see what else runs on its machine.");
}

}  // namespace retort::train
