// A step of training waits for the device once: for its losses and the norm of its gradient.
#include "device/test_device.h"
#include "device/torch_device.h"
#include "train/training.h"

namespace retort {
namespace {

class TrainingOnADevice : public test::TrainingTest {};

TEST_F(TrainingOnADevice, WaitsForItOnceAStep) {
  test::Given given;
  given.device = test::torch_device(0);
  given.options = test::small_options(5);
  given.sources = {source("text", test::made_up_documents(60))};
  test::Witness witness;
  std::vector<std::int64_t> waits;  // after each step; a checkpoint comes behind the last one
  witness.after_step = [&](std::int64_t) { waits.push_back(test::device::waits()); };
  test::Training training(given, place("run"));
  training.run(witness);
  ASSERT_EQ(waits.size(), 5U);
  for (std::size_t step = 1; step < waits.size(); ++step)
    EXPECT_EQ(waits[step] - waits[step - 1], 1) << "step " << step + 1;
  EXPECT_TRUE(test::device::take_faults().empty());
}

}  // namespace
}  // namespace retort
