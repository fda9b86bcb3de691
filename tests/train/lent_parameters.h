#pragma once
// Parameters as a group of ranks would hold them, in one process: a unit is lent between acquire and release
// and is not a number afterwards, and the gradient of a whole unit is gone once it is reduced.  Whatever the
// engine reads outside these bounds poisons its result.

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "retort/shard/parameters.h"

namespace retort::test {

class LentParameters final : public shard::Parameters {
 public:
  struct Counts {
    std::int64_t acquired = 0, released = 0, reduced = 0;
  };

  LentParameters(std::unique_ptr<shard::Parameters> inner, shard::Use use)
      : inner_(std::move(inner)),
        use_(use),
        lent_(units()),
        counts_(units()),
        reduced_(units(), false),
        whole_(units()) {}
  ~LentParameters() override {
    for (const auto& stack : lent_) EXPECT_TRUE(stack.empty()) << "a unit was never released";
  }

  const architecture::Config& config() const override { return inner_->config(); }
  const architecture::Layout& layout() const override { return inner_->layout(); }

  void prefetch(std::int64_t unit) override { inner_->prefetch(unit); }
  at::Tensor acquire(std::int64_t unit) override {
    counts_[at(unit)].acquired += 1;
    lent_[at(unit)].push_back(inner_->acquire(unit).clone());
    std::int64_t held = 0;
    for (const auto& stack : lent_) held += static_cast<std::int64_t>(stack.size());
    most_held_ = std::max(most_held_, held);
    return lent_[at(unit)].back();
  }
  void release(std::int64_t unit) override {
    ASSERT_FALSE(lent_[at(unit)].empty()) << "unit " << unit << " was released without being held";
    counts_[at(unit)].released += 1;
    lent_[at(unit)].back().fill_(std::numeric_limits<float>::quiet_NaN());
    lent_[at(unit)].pop_back();
  }
  bool resident() const override { return false; }

  at::Tensor gradient(std::int64_t unit) override {
    if (reduced_[at(unit)]) whole(unit).zero_();
    reduced_[at(unit)] = false;
    return whole(unit);
  }
  void reduce(std::int64_t unit, bool) override {
    counts_[at(unit)].reduced += 1;
    reduced_[at(unit)] = true;
    inner_->own_gradient(unit).add_(whole(unit));
    whole(unit).fill_(std::numeric_limits<float>::quiet_NaN());
  }
  void finish_reduces() override { inner_->finish_reduces(); }
  void zero_gradients() override {
    inner_->zero_gradients();
    for (std::int64_t unit = 0; unit < layout().num_units(); ++unit) whole(unit).zero_();
    std::fill(reduced_.begin(), reduced_.end(), false);
  }

  optim::UnitRange range(std::int64_t unit) const override { return inner_->range(unit); }
  at::Tensor master(std::int64_t unit) override { return inner_->master(unit); }
  at::Tensor own_gradient(std::int64_t unit) override { return inner_->own_gradient(unit); }
  at::Tensor compute_copy(std::int64_t unit) override { return inner_->compute_copy(unit); }
  void updated(std::int64_t unit) override { inner_->updated(unit); }
  at::Tensor whole_master(std::int64_t unit) override { return inner_->whole_master(unit); }
  void check_replicas() override { ++replica_checks_; }
  int replica_checks() const { return replica_checks_; }

  const std::vector<Counts>& counts() const { return counts_; }
  void forget_counts() {
    counts_.assign(units(), {});
    most_held_ = 0;
  }
  /// Units held at the same time, at most.
  std::int64_t most_held() const { return most_held_; }

 private:
  static std::size_t at(std::int64_t unit) { return static_cast<std::size_t>(unit); }
  std::size_t units() const { return at(inner_->layout().num_units()); }
  at::Tensor& whole(std::int64_t unit) {
    EXPECT_EQ(use_, shard::Use::trained) << "a frozen model has no gradients";
    auto& gradient = whole_[at(unit)];
    if (!gradient.defined()) gradient = at::zeros_like(inner_->own_gradient(unit));
    return gradient;
  }

  std::unique_ptr<shard::Parameters> inner_;
  shard::Use use_;
  std::vector<std::vector<at::Tensor>> lent_;
  std::vector<Counts> counts_;
  std::vector<bool> reduced_;
  std::vector<at::Tensor> whole_;
  std::int64_t most_held_ = 0;
  int replica_checks_ = 0;
};

}  // namespace retort::test
