// Where the time of a step goes, on a processor and on an accelerator.
#include "retort/shard/phases.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <numeric>

#include "device/test_device.h"
#include "device/torch_device.h"
#include "retort/base/machine.h"
#include "retort/shard/accelerator.h"

namespace retort::shard {
namespace {

double of(const PerPhase& seconds, Phase phase) {
  return seconds[static_cast<std::size_t>(phase)];
}

double sum_of(const PerPhase& seconds) {
  return std::accumulate(seconds.begin(), seconds.end(), 0.0);
}

// Products that the device makes after the thread that gave them has gone on.
at::Tensor work_on(at::Device device, int products) {
  auto x = at::full({256, 256}, 1.0 / 256, at::TensorOptions().dtype(at::kFloat).device(device));
  for (int i = 0; i < products; ++i) x = at::mm(x, x);
  return x.sum();
}

TEST(DevicePhases, CountWhatTheDeviceDoesAndNotWhenItWasGiven) {
  const auto device = test::torch_device(0);
  DevicePhases phases(accelerator_of(device));
  work_on(device, 1).item<float>();
  const auto begin = base::monotonic_seconds();
  phases.enter(Phase::head);
  (void)work_on(device, 20);
  phases.enter(Phase::backward);
  const auto sum = work_on(device, 10);
  phases.enter(Phase::update);
  const auto waits = test::device::waits();
  (void)sum.item<float>();
  const auto seconds = base::monotonic_seconds() - begin;
  EXPECT_EQ(test::device::waits(), waits + 1);
  const auto taken = phases.take();
  EXPECT_EQ(test::device::waits(), waits + 1) << "marks are read, not waited for";
  EXPECT_GT(of(taken, Phase::head), 0);
  EXPECT_GT(of(taken, Phase::backward), 0);
  EXPECT_EQ(sum_of(taken), of(taken, Phase::head) + of(taken, Phase::backward));
  EXPECT_LE(sum_of(taken), seconds) << "all of it lies between the first mark and the reading";
}

TEST(DevicePhases, GoOnWhereTheyWereTaken) {
  const auto device = test::torch_device(0);
  DevicePhases phases(accelerator_of(device));
  EXPECT_EQ(sum_of(phases.take()), 0);
  phases.enter(Phase::update);
  work_on(device, 1).item<float>();
  EXPECT_EQ(sum_of(phases.take()), 0) << "the phase goes on";
  work_on(device, 20).item<float>();
  phases.enter(Phase::data);
  work_on(device, 1).item<float>();
  const auto taken = phases.take();
  EXPECT_GT(of(taken, Phase::update), 0);
  EXPECT_EQ(sum_of(taken), of(taken, Phase::update));
  EXPECT_EQ(sum_of(phases.take()), 0);
}

}  // namespace
}  // namespace retort::shard
