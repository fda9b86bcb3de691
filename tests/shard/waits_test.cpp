// A step gives its work to the device and waits for it once: to read the losses at its end.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "device/test_device.h"
#include "device/torch_device.h"
#include "retort/comm/group.h"
#include "retort/loss/squarehead.h"
#include "retort/shard/engine.h"
#include "support/reference_model.h"

namespace retort {
namespace {

template <typename Act>
std::int64_t waits_of(const Act& act) {
  const auto before = test::device::waits();
  act();
  return test::device::waits() - before;
}

// Mistakes that were made on purpose are found.
TEST(TestDevice, AWaitOfTheProcessorIsCounted) {
  const auto device = test::torch_device(0);
  const auto here = at::ones({4}, at::kFloat), there = here.to(device);
  EXPECT_EQ(waits_of([&] { (void)here.to(device); }), 1);
  EXPECT_EQ(waits_of([&] { (void)there.cpu(); }), 1);
  EXPECT_EQ(waits_of([&] { (void)there[0].item<float>(); }), 1);
  EXPECT_EQ(waits_of([&] { (void)there.add(there).mul(2).sum(); }), 0);
}

// Features are copied to a device once.
TEST(SquareHeadOnDevices, HasItsFeaturesWhereTheHiddenStatesAre) {
  const loss::SquareHead head({.kind = loss::LossKind::squarehead, .weight = 1}, {0}, {0, 2, 3});
  const auto student = at::arange(18, at::kDouble).view({6, 3}), teacher = at::ones({6, 5}, at::kDouble);
  const auto value_on = [&](at::Device device) {
    const auto student_ND = student.to(device), teacher_NF = teacher.to(device);
    const auto grad_ND = at::empty_like(student_ND);
    const std::vector<std::int64_t> bounds{0, 6};
    at::Tensor sum;
    const auto waits = waits_of([&] { sum = head.add({student_ND, teacher_NF, bounds, 6}, grad_ND); });
    return std::pair(sum.item<double>(), waits);
  };
  const auto here = value_on(at::kCPU);
  for (const int number : {0, 1})
    for (const std::int64_t copies : {1, 0}) {
      const auto there = value_on(test::torch_device(number));
      EXPECT_NEAR(there.first, here.first, 1e-12 * here.first);
      EXPECT_EQ(there.second, copies);
    }
}

// Sequences of several documents.
shard::MicroBatch batch_of(std::int64_t sequences, at::Device device) {
  const std::int64_t length = 11;
  const auto tokens = sequences * length;
  shard::MicroBatch batch{.ids_N = at::arange(tokens, at::kLong).remainder(61).to(device),
                          .targets_N = at::arange(1, tokens + 1, at::kLong).remainder(61).to(device),
                          .bounds = {0},
                          .starts = {},
                          .num_targets = tokens};
  for (std::int64_t s = 0; s < sequences; ++s) {
    batch.bounds.push_back((s + 1) * length);
    batch.starts.insert(batch.starts.end(), {s * length, s * length + 3, s * length + 7});
  }
  batch.starts.push_back(tokens);
  return batch;
}

TEST(EngineOnADevice, WaitsForItOnceAStep) {
  const auto device = test::torch_device(0);
  const auto resident = [&](const test::Shape& shape, std::uint64_t seed, shard::Use use) {
    const auto weights = test::lively_weights(test::config_of(shape), seed);
    return shard::resident_parameters(model::collected(model::source_of(weights), at::kFloat, device), use,
                                      at::kFloat);
  };
  const auto student = resident({.hidden = 24, .blocks = 2}, 31, shard::Use::trained);
  const auto teacher = resident({.hidden = 30, .head_dim = 8, .blocks = 3}, 32, shard::Use::frozen);
  std::vector<std::int64_t> features(24);
  for (std::size_t i = 0; i < features.size(); ++i) features[i] = static_cast<std::int64_t>(i) + 3;
  const auto losses =
      loss::make_losses({{.kind = loss::LossKind::cross_entropy, .weight = 0.25},
                         {.kind = loss::LossKind::kl_divergence, .weight = 1, .temperature = 3},
                         {.kind = loss::LossKind::squarehead, .weight = 0.7}},
                        {.student = 2, .teacher = 3, .survivors = {}, .features = features});
  const auto group = comm::single_group();
  shard::PhaseClock clock;
  shard::ModelTeacher taught_by(*teacher);
  shard::Engine engine(*student, &taught_by, losses, *group, clock, {.wave = 2, .head_rows = 16});
  const std::vector<shard::MicroBatch> first{batch_of(1, device)},
      second{batch_of(1, device), batch_of(2, device), batch_of(1, device)};
  EXPECT_EQ(waits_of([&] { (void)engine.step(first); }), 4)
      << "the frequencies of two models and the features are copied once";
  EXPECT_EQ(waits_of([&] { (void)engine.step(second); }), 1);
  EXPECT_TRUE(test::device::take_faults().empty());
}

}  // namespace
}  // namespace retort
