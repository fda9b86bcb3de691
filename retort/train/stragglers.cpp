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

double Stragglers::median_of(int rank, shard::Phase phase) const {
  std::vector<double> values;
  for (const auto& step : window_)
    values.push_back(step[static_cast<std::size_t>(rank)][static_cast<std::size_t>(phase)]);
  return median(std::move(values));
}

double Stragglers::others_median(int rank, shard::Phase phase) const {
  std::vector<double> values;
  for (int other = 0; other < ranks_; ++other)
    if (other != rank) values.push_back(median_of(other, phase));
  return median(std::move(values));
}

std::optional<Straggler> Stragglers::slow_in_window(int rank, double step_seconds) const {
  for (const auto phase : kOwnWork) {
    const double own = median_of(rank, phase), others = others_median(rank, phase);
    if (own > kSlower * others && own - others > kShare * step_seconds)
      return Straggler{rank, phase, own, others};
  }
  return {};
}

std::vector<Straggler> Stragglers::add(std::span<const shard::PerPhase> of_ranks) {
  window_.emplace_back(of_ranks.begin(), of_ranks.end());
  if (ranks_ < 2 || window_.size() < kWindow) return {};
  const auto& last = window_.back().front();
  const double step_seconds = std::accumulate(last.begin(), last.end(), 0.0);
  std::vector<Straggler> found;
  for (int rank = 0; rank < ranks_; ++rank) {
    const auto index = static_cast<std::size_t>(rank);
    const auto slow = slow_in_window(rank, step_seconds);
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
