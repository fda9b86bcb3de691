// A step of training waits for the device once: for its losses and the norm of its gradient.
#include "device/test_device.h"
#include "device/torch_device.h"
#include "train/training.h"

namespace retort {
namespace {

class TrainingOnADevice : public test::TrainingTest {
 protected:
  // Without a checkpoint between its steps; that of the last step waits too.
  std::int64_t waits_of(std::int64_t steps) {
    test::Given given;
    given.device = test::torch_device(0);
    given.options = test::small_options(steps);
    given.sources = {source("text", test::made_up_documents(60))};
    test::Witness witness;
    test::Training training(given, place(std::to_string(steps)));
    const auto before = test::device::waits();
    training.run(witness);
    EXPECT_EQ(std::ssize(witness.reports), steps);
    return test::device::waits() - before;
  }
};

TEST_F(TrainingOnADevice, WaitsForItOnceAStep) {
  const auto three = waits_of(3);
  EXPECT_EQ(waits_of(7) - three, 4);
  EXPECT_TRUE(test::device::take_faults().empty());
}

}  // namespace
}  // namespace retort
