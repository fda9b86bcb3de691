// The loop learns, keeps pruned weights at zero, and accumulation does not change what a step is.
#include "optim/grid_rule.h"
#include "retort/base/error.h"
#include "support/tolerance.h"
#include "train/training.h"

namespace retort {
namespace {

using test::Training;
using test::Witness;

class LearningTest : public test::TrainingTest {
 protected:
  test::Given given(std::int64_t steps) const {
    test::Given given;
    given.options = test::small_options(steps);
    given.options.optim.lr = 1e-2;
    given.sources = {
        source("refrain", std::vector<std::string>(8, "row row row your boat gently down the stream"))};
    return given;
  }
};

TEST_F(LearningTest, TheLossOfARefrainFalls) {
  for (const bool distill : {false, true})
    for (const auto dtype : {at::kFloat, at::kBFloat16}) {
      auto given = this->given(20);
      given.distill = distill;
      given.dtype = dtype;
      Training training(given, place(std::to_string(distill) + at::toString(dtype)));
      Witness witness;
      (void)training.run(witness);
      ASSERT_EQ(witness.reports.size(), 20U);
      EXPECT_LT(witness.reports.back().loss, (distill ? 0.9 : 0.6) * witness.reports.front().loss);
    }
}

TEST_F(LearningTest, PrunedWeightsStayZeroAndTheOthersMove) {
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    auto given = this->given(5);
    given.masked = true;
    given.dtype = dtype;
    given.options.optim.weight_decay = 0.1;
    Training training(given, place(at::toString(dtype)));
    Witness witness;
    std::int64_t looked_at = 0;
    witness.after_step = [&](std::int64_t) {
      for (std::size_t unit = 0; unit < training.masks().size(); ++unit) {
        if (!training.masks()[unit].defined()) continue;
        const auto zeros = training.masks()[unit].eq(0);
        looked_at += zeros.sum().item<std::int64_t>();
        const auto number = static_cast<std::int64_t>(unit);
        EXPECT_TRUE(training.student().master(number).masked_select(zeros).eq(0).all().item<bool>());
        EXPECT_TRUE(training.student().acquire(number).masked_select(zeros).eq(0).all().item<bool>());
      }
    };
    const auto before = training.student().master(1).clone();
    (void)training.run(witness);
    EXPECT_GT(looked_at, 5 * 2 * 32 * 32);
    EXPECT_FALSE(at::equal(before, training.student().master(1)));
    EXPECT_NO_THROW(model::check_pattern(training.trained()));
  }
}

// From before the first step on: the first loss is that of weights that lie on the grid.
TEST_F(LearningTest, AModelComputesWithTheCopiesThatARuleMakes) {
  const test::GridRule rule(1.0 / 64);
  const auto first_loss = [&](const optim::WeightRule* of_run, bool on_grid) {
    auto given = this->given(2);
    given.dtype = at::kBFloat16;
    given.rule = of_run;
    Training training(given, place(std::to_string(on_grid) + (of_run ? "ruled" : "free")));
    auto& student = training.student();
    for (std::int64_t unit = 0; on_grid && unit < student.layout().num_units(); ++unit) {
      student.master(unit).copy_(rule.on_grid(student.master(unit)));
      student.compute_copy(unit).copy_(student.master(unit));
    }
    Witness witness;
    (void)training.run(witness);
    for (std::int64_t unit = 0; of_run && unit < student.layout().num_units(); ++unit)
      test::expect_identical(student.compute_copy(unit),
                             rule.on_grid(student.master(unit)).to(at::kBFloat16));
    return witness.reports.front().loss;
  };
  const auto ruled = first_loss(&rule, false);
  EXPECT_EQ(ruled, first_loss(nullptr, true));
  EXPECT_NE(ruled, first_loss(nullptr, false));
}

TEST_F(LearningTest, AStepIsTheSameHoweverItsTokensAreCut) {
  std::vector<double> losses;
  for (const auto& batch : {train::BatchOptions{4, 1, 0}, {2, 2, 0}, {2, 2, 1}, {1, 4, 2}}) {
    auto given = this->given(3);
    given.options.batch = batch;
    Training training(given, place("cut-" + std::to_string(losses.size())));
    Witness witness;
    (void)training.run(witness);
    ASSERT_EQ(witness.reports.size(), 3U);
    losses.push_back(witness.reports.back().loss);
  }
  for (const double loss : losses) EXPECT_NEAR(loss, losses.front(), 1e-4 * losses.front());
}

}  // namespace
}  // namespace retort
