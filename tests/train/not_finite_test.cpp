// A loss or gradient that is not finite stops the stage before it reaches the weights.
#include <limits>

#include "retort/base/error.h"
#include "support/message_of.h"
#include "train/training.h"

namespace retort {
namespace {

using test::message_of;
using test::Training;
using test::Witness;

class NotFiniteTest : public test::TrainingTest {
 protected:
  test::Given given() const {
    test::Given given;
    given.options = test::small_options(6);
    given.sources = {source("one", test::made_up_documents(40))};
    return given;
  }
};

TEST_F(NotFiniteTest, AWeightThatIsNotANumberStopsTheNextStepBeforeItsUpdate) {
  const auto given = this->given();
  for (const bool in_copy : {false, true}) {
    auto variant = given;
    variant.dtype = in_copy ? at::kBFloat16 : at::kFloat;
    Training training(variant, place(in_copy ? "bf16" : "fp32"));
    Witness witness;
    std::string planted;
    witness.after_step = [&](std::int64_t step) {
      if (step != 3) return;
      auto unit = training.student().acquire(1);  // compute copy, or the master itself
      unit[5] = std::numeric_limits<float>::quiet_NaN();
      planted = training.weights_hash();
    };
    const auto message = message_of<base::ValidationError>([&] { (void)training.run(witness); });
    EXPECT_SAYS(message, "stage: step 4 (samples 12 to 15): the loss is not finite");
    EXPECT_SAYS(message, "optim.lr");
    EXPECT_EQ(training.weights_hash(), planted);
    EXPECT_EQ(witness.reports.size(), 3U);
  }
}

TEST_F(NotFiniteTest, AnAbsurdLearningRateIsFoundAtTheStepAfter) {
  auto given = this->given();
  given.options.optim.lr = 1e30;
  given.options.optim.warmup_steps = 0;
  Training training(given, place("run"));
  Witness witness;
  std::string before;
  witness.after_step = [&](std::int64_t) { before = training.weights_hash(); };
  const auto message = message_of<base::ValidationError>([&] { (void)training.run(witness); });
  EXPECT_SAYS(message, "is not finite; no update was made and the last checkpoint is intact");
  EXPECT_FALSE(before.empty());
  EXPECT_EQ(training.weights_hash(), before);
}

TEST_F(NotFiniteTest, TheStageGoesOnFromItsLastCheckpoint) {
  auto given = this->given();
  given.options.checkpoint_every_steps = 2;
  const auto run = place("run");
  {
    Training training(given, run);
    Witness witness;
    witness.after_step = [&](std::int64_t step) {
      if (step == 3) training.student().master(0).fill_(std::numeric_limits<float>::infinity());
    };
    EXPECT_THROW((void)training.run(witness), base::ValidationError);
  }
  Training again(given, run);
  Witness witness;
  EXPECT_TRUE(again.run(witness).finished);
  ASSERT_EQ(witness.reports.size(), 4U);
  EXPECT_EQ(witness.reports.front().step, 3);
}

}  // namespace
}  // namespace retort
