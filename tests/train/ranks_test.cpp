// A few steps on several ranks are those of one: what is summed over all ranks counts for each.
#include <ATen/Parallel.h>

#include <mutex>

#include "retort/data/windows.h"
#include "retort/train/batches.h"
#include "support/ranks.h"
#include "support/tolerance.h"
#include "train/training.h"

namespace retort {
namespace {

using test::Training;
using test::Witness;

constexpr std::int64_t kStepsOnRanks = 3;

class TrainingOnRanks : public test::TrainingTest {
 protected:
  TrainingOnRanks() {
    given_.options = test::small_options(kStepsOnRanks);
    given_.options.batch = {.sequences = 1, .accumulate = 4, .wave = 0};
    given_.options.evaluate_every_steps = 1;
    // Updates grow with the gradient, and each is clipped: AdamW hides by what a gradient was multiplied.
    given_.options.optim.eps = 1;
    given_.options.optim.clip_norm = 0.05;
    given_.options.optim.lr = 1;
    given_.sources = {source("one", test::made_up_documents(40))};
  }

  // Three batches, so that some ranks have more than others.
  std::vector<train::HeldOutSet> held_out() const {
    data::WindowReader reader(given_.sources[0], data::Split::all, {.context = 32, .tokens = 200},
                              given_.encode, test::kSpecial);
    std::vector<data::Sequence> windows;
    for (data::Sequence window; windows.size() < 3 && reader.next(window);) windows.push_back(window);
    return {{"one", train::make_micro_batches(windows, 1, at::kCPU)}};
  }

  struct Found {
    std::vector<record::StepReport> reports;
    model::Weights weights;
  };
  // Each rank's, in any order.
  std::vector<Found> on(int ranks) {
    given_.options.shard = {ranks, ranks};
    const auto run = place("ranks-" + std::to_string(ranks));
    std::vector<Found> found;
    std::mutex mutex;
    test::on_ranks(ranks, [&](comm::Group& world) {
      at::set_num_threads(1);
      Training training(given_, run, world);
      Witness witness;
      EXPECT_TRUE(training.run(witness, held_out()).finished);
      auto weights = training.trained();
      const std::lock_guard lock(mutex);
      found.push_back({witness.reports, std::move(weights)});
    });
    return found;
  }

  test::Given given_;
};

TEST_F(TrainingOnRanks, LossesNormsAndWeightsAreThoseOfOne) {
  const auto one = on(1).front();
  ASSERT_EQ(one.reports.size(), kStepsOnRanks);
  ASSERT_EQ(held_out()[0].batches.size(), 3U);
  for (const auto& report : one.reports) ASSERT_GT(report.gradient_norm, 2 * given_.options.optim.clip_norm);
  for (const int ranks : {2, 4})
    for (const auto& rank : on(ranks)) {
      SCOPED_TRACE(ranks);
      ASSERT_EQ(rank.reports.size(), kStepsOnRanks);
      for (std::size_t step = 0; step < kStepsOnRanks; ++step) {
        const auto &found = rank.reports[step], &expected = one.reports[step];
        const auto near = [&](double ours, double theirs, const char* what) {
          EXPECT_NEAR(ours, theirs, test::tolerance(at::kFloat) * theirs) << what << " of step " << step + 1;
        };
        near(found.loss, expected.loss, "loss");
        near(found.gradient_norm, expected.gradient_norm, "norm");
        ASSERT_TRUE(found.held_out_loss && expected.held_out_loss);
        near(*found.held_out_loss, *expected.held_out_loss, "held-out loss");
      }
      for (std::size_t unit = 0; unit < one.weights.units.size(); ++unit)
        test::expect_close(rank.weights.units[unit], one.weights.units[unit], test::tolerance(at::kFloat));
    }
}

}  // namespace
}  // namespace retort
