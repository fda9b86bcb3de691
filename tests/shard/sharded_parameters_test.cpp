// A step over several ranks is the step of one rank, however the models lie over them.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <mutex>

#include "device/test_device.h"
#include "device/torch_device.h"
#include "retort/base/error.h"
#include "retort/base/index.h"
#include "retort/comm/nccl/library.h"
#include "retort/shard/accelerator.h"
#include "retort/shard/engine.h"
#include "support/message_of.h"
#include "support/outside_data.h"
#include "support/ranks.h"
#include "support/reference_model.h"
#include "support/tolerance.h"

namespace retort {
namespace {

constexpr std::int64_t kSequences = 7, kLength = 11;

// How a step is cut and where the models lie.
struct Layout {
  int ranks = 1;
  std::int64_t student_ranks = 0, teacher_ranks = 0;  ///< of a shard group; 0: all
  std::int64_t wave = 1;
  bool tied = false;
  bool apart = false;    ///< no common memory: units are gathered
  bool devices = false;  ///< each rank computes on a device of its own
};

std::string name_of(const testing::TestParamInfo<Layout>& test) {
  const auto& l = test.param;
  return base::join("Ranks", l.ranks, "Student", l.student_ranks, "Teacher", l.teacher_ranks, "Wave", l.wave,
                    l.tied ? "Tied" : "", l.apart ? "Apart" : "", l.devices ? "Devices" : "");
}

struct Models {
  // Tiny ones, made up.
  explicit Models(bool tied)
      : student(test::lively_weights(test::config_of({.blocks = 2, .tied = tied}), 31)),
        teacher(test::lively_weights(test::config_of({.blocks = 3}), 32)) {}
  // A model of a directory teaches itself with every weight a little off.
  explicit Models(const std::filesystem::path& directory)
      : student(model::load_weights(directory, at::kDouble, at::kCPU)),
        teacher(model::load_weights(directory, at::kDouble, at::kCPU)) {
    auto random = at::make_generator<at::CPUGeneratorImpl>(33);
    for (auto& unit : student.units) unit.mul_(at::randn(unit.sizes(), random, unit.options()) * 0.05 + 1);
  }

  std::vector<shard::MicroBatch> batches(int rank, int ranks, at::Device device = at::kCPU) const {
    auto random = at::make_generator<at::CPUGeneratorImpl>(5);  // the default one belongs to all threads
    const auto vocab = student.config.vocab_size;
    const auto ids = at::randint(0, vocab, {kSequences, kLength}, random, at::kLong);
    const auto targets = at::randint(0, vocab, {kSequences, kLength}, random, at::kLong);
    std::vector<shard::MicroBatch> list;
    for (auto s = kSequences * rank / ranks; s < kSequences * (rank + 1) / ranks; ++s)
      list.push_back(
          {ids[s].to(device), targets[s].to(device), {0, kLength}, {0, 3 + s % 4, kLength}, kLength});
    return list;
  }

  loss::Losses losses() const {
    return loss::make_losses(
        {{.kind = loss::LossKind::cross_entropy, .weight = 0.25},
         {.kind = loss::LossKind::kl_divergence, .weight = 1, .temperature = 3},
         {.kind = loss::LossKind::jensen_shannon, .weight = 0.4, .temperature = 2, .beta = 0.3},
         {.kind = loss::LossKind::total_variation, .weight = 0.6},
         {.kind = loss::LossKind::squarehead, .weight = 0.7}},
        {.student = student.layout.num_blocks(), .teacher = teacher.layout.num_blocks(), .survivors = {}});
  }

  model::Weights student, teacher;
};

// What all ranks together have after a step: gradients put together from their parts, and the loss.
struct Outcome {
  double loss = 0;
  std::vector<at::Tensor> gradients, weights;
};

at::Tensor copied(const at::Tensor& x) {
  return x.to(at::kCPU, x.scalar_type(), /*non_blocking=*/false, /*copy=*/true);
}

// Two steps: the second begins with zero gradients and the weights that the first has left.
Outcome steps_of_one_rank(const Models& models, const Layout& layout, at::ScalarType dtype) {
  const at::Device device = layout.devices ? test::torch_device(0) : at::kCPU;
  const auto on_device = [&](const model::Weights& weights, at::ScalarType type) {
    return model::collected(model::source_of(weights), type, device);
  };
  const auto student =
      shard::resident_parameters(on_device(models.student, at::kDouble), shard::Use::trained, dtype);
  const auto teacher =
      shard::resident_parameters(on_device(models.teacher, dtype), shard::Use::frozen, dtype);
  const auto group = comm::single_group();
  const auto all = models.losses();
  shard::PhaseClock clock;
  shard::ModelTeacher taught_by(*teacher);
  shard::Engine engine(*student, &taught_by, all, *group, clock, {.wave = layout.wave, .head_rows = 16});
  Outcome outcome;
  for (int step = 0; step < 2; ++step) {
    outcome.loss = engine.step(models.batches(0, 1, device)).loss;
    for (std::int64_t unit = 0; unit < student->layout().num_units(); ++unit) {
      student->master(unit).sub_(student->own_gradient(unit), 0.1);
      if (auto copy = student->compute_copy(unit); copy.defined()) copy.copy_(student->master(unit));
    }
  }
  for (std::int64_t unit = 0; unit < student->layout().num_units(); ++unit) {
    outcome.gradients.push_back(copied(student->own_gradient(unit)));
    outcome.weights.push_back(copied(student->master(unit)));
  }
  return outcome;
}

// A rank takes the device of its number, where it has one.
at::Device entered_device(comm::Group& world, bool devices) {
  if (!devices) return at::kCPU;
  const auto device = test::torch_device(world.rank());
  const auto accelerator = shard::accelerator_of(device);
  accelerator->enter();
  world.job().set_accelerator(accelerator, comm::nccl::library());
  return device;
}

Outcome steps_of_ranks(const Models& models, const Layout& layout, at::ScalarType dtype) {
  Outcome outcome;
  for (const auto& unit : models.student.units)
    outcome.gradients.push_back(at::zeros({unit.numel()}, dtype == at::kDouble ? at::kDouble : at::kFloat));
  std::mutex mutex;
  test::on_ranks(
      layout.ranks,
      [&](comm::Group& world) {
        at::set_num_threads(1);
        const auto device = entered_device(world, layout.devices);
        const auto for_student = shard::make_groups(world, layout.student_ranks);
        const auto for_teacher = shard::make_groups(world, layout.teacher_ranks);
        const auto student = shard::sharded_parameters(model::source_of(models.student), shard::Use::trained,
                                                       dtype, device, for_student);
        const auto teacher = shard::sharded_parameters(model::source_of(models.teacher), shard::Use::frozen,
                                                       dtype, device, for_teacher);
        const auto all = models.losses();
        shard::PhaseClock clock;
        shard::ModelTeacher taught_by(*teacher);
        shard::Engine engine(*student, &taught_by, all, world, clock, {.wave = layout.wave, .head_rows = 16});
        const auto batches = models.batches(world.rank(), layout.ranks, device);
        double loss = 0;
        for (int step = 0; step < 2; ++step) {
          loss = engine.step(batches, (kSequences + layout.ranks - 1) / layout.ranks).loss;
          for (std::int64_t unit = 0; unit < student->layout().num_units(); ++unit) {
            student->master(unit).sub_(student->own_gradient(unit), 0.1);
            if (auto copy = student->compute_copy(unit); copy.defined()) copy.copy_(student->master(unit));
            student->updated(unit);
          }
          student->check_replicas();
        }
        for (std::int64_t unit = 0; unit < student->layout().num_units(); ++unit) {
          const auto range = student->range(unit);
          const auto weights = student->whole_master(unit);
          const std::scoped_lock lock(mutex);
          outcome.loss = loss;
          outcome.gradients[static_cast<std::size_t>(unit)]
              .narrow(0, range.begin, range.count)
              .copy_(student->own_gradient(unit));
          if (world.rank() == layout.ranks - 1) outcome.weights.push_back(copied(weights));
        }
        world.barrier();
      },
      !layout.apart);
  return outcome;
}

class Sharded : public testing::TestWithParam<Layout> {};

void expect_steps_of_one_rank(const Models& models, const Layout& layout, at::ScalarType dtype,
                              const Outcome& expected) {
  SCOPED_TRACE(at::toString(dtype));
  // Sums of seven sequences in another order, in each type.
  const double allowed = dtype == at::kDouble ? 1e-12 : test::tolerance(dtype);
  const auto actual = steps_of_ranks(models, layout, dtype);
  EXPECT_NEAR(actual.loss, expected.loss, allowed * std::abs(expected.loss));
  ASSERT_EQ(actual.weights.size(), expected.weights.size());
  for (std::size_t unit = 0; unit < expected.gradients.size(); ++unit) {
    test::expect_close(actual.gradients[unit], expected.gradients[unit], allowed, "gradient");
    test::expect_close(actual.weights[unit], expected.weights[unit], allowed, "weights");
  }
}

void expect_steps_of_one_rank(const Layout& layout) {
  const Models models(layout.tied);
  for (const auto dtype : {at::kDouble, at::kFloat, at::kBFloat16})
    expect_steps_of_one_rank(models, layout, dtype, steps_of_one_rank(models, layout, dtype));
}

TEST_P(Sharded, StepsAreThoseOfOneRank) {
  expect_steps_of_one_rank(GetParam());
}

TEST_P(Sharded, StepsGiveTheSameBitsAgain) {
  const Models models(GetParam().tied);
  const auto first = steps_of_ranks(models, GetParam(), at::kFloat);
  const auto again = steps_of_ranks(models, GetParam(), at::kFloat);
  EXPECT_EQ(first.loss, again.loss);
  for (std::size_t unit = 0; unit < first.gradients.size(); ++unit) {
    test::expect_identical(first.gradients[unit], again.gradients[unit], "gradient");
    test::expect_identical(first.weights[unit], again.weights[unit], "weights");
  }
}

// Flat, 2 x 2, replicated, the teacher apart; waves of 1, 2 and all; ranks that have less than others.
INSTANTIATE_TEST_SUITE_P(
    Layouts, Sharded,
    testing::Values(Layout{.ranks = 1}, Layout{.ranks = 2}, Layout{.ranks = 3}, Layout{.ranks = 4},
                    Layout{.ranks = 4, .student_ranks = 2, .teacher_ranks = 2},
                    Layout{.ranks = 4, .student_ranks = 1, .teacher_ranks = 1},
                    Layout{.ranks = 4, .student_ranks = 2, .teacher_ranks = 4, .wave = 2},
                    Layout{.ranks = 4, .student_ranks = 4, .teacher_ranks = 1, .wave = 7},
                    Layout{.ranks = 2, .wave = 7, .tied = true},
                    Layout{.ranks = 4, .student_ranks = 2, .wave = 2, .tied = true},
                    Layout{.ranks = 2, .apart = true},
                    Layout{.ranks = 3, .wave = 2, .tied = true, .apart = true},
                    Layout{.ranks = 4, .student_ranks = 2, .teacher_ranks = 1, .apart = true},
                    Layout{.ranks = 4, .student_ranks = 1, .wave = 7, .tied = true, .apart = true},
                    Layout{.ranks = 8, .student_ranks = 4}),
    name_of);

// Models that were trained; one rank makes the step once for all layouts.  Small ones above have all types on
// each layout.
void expect_steps_of_one_rank(const std::filesystem::path& model) {
  const Models models(model);
  const std::vector<std::pair<at::ScalarType, std::vector<Layout>>> layouts_of_types = {
      {at::kFloat,
       {{.ranks = 2},
        {.ranks = 4, .wave = 7},
        {.ranks = 4, .student_ranks = 2, .teacher_ranks = 4},
        {.ranks = 3, .wave = 2, .apart = true}}},
      {at::kBFloat16, {{.ranks = 4, .student_ranks = 2, .teacher_ranks = 2}}}};
  for (const auto& [dtype, layouts] : layouts_of_types) {
    const auto expected = steps_of_one_rank(models, {}, dtype);
    for (const auto& layout : layouts) {
      SCOPED_TRACE(name_of({layout, 0}));
      expect_steps_of_one_rank(models, layout, dtype, expected);
    }
  }
}

TEST(ShardedModels, Europa5mStepsAsOnOneRank) {
  expect_steps_of_one_rank(test::source() / "models/europa-5m");
}

TEST(ShardedModels, Babyllama105StepsAsOnOneRank) {
  RETORT_SHARED_DATA_OR_SKIP(data);
  expect_steps_of_one_rank(data / "models/babyllama-tok105");
}

class ShardedOnDevices : public testing::TestWithParam<Layout> {};

TEST_P(ShardedOnDevices, StepsAreThoseOfOneRank) {
  (void)test::device::take_faults();
  expect_steps_of_one_rank(GetParam());
  for (const auto& fault : test::device::take_faults()) ADD_FAILURE() << fault;
}

INSTANTIATE_TEST_SUITE_P(
    Layouts, ShardedOnDevices,
    testing::Values(Layout{.ranks = 3, .tied = true, .devices = true},
                    Layout{.ranks = 4, .student_ranks = 2, .teacher_ranks = 2, .wave = 2, .devices = true},
                    Layout{.ranks = 4, .student_ranks = 2, .teacher_ranks = 1, .wave = 7, .devices = true}),
    name_of);

// As where memory or the network of one rank is at fault.
TEST(Replicas, WhoseWeightsDifferAreNamed) {
  const Models models(false);
  const auto steps = [&](int faulty, shard::Use use, at::ScalarType dtype) {
    test::on_ranks(4, [&](comm::Group& world) {
      const auto groups = shard::make_groups(world, 2);
      const auto model =
          shard::sharded_parameters(model::source_of(models.student), use, dtype, at::kCPU, groups);
      model->check_replicas();
      if (world.rank() == faulty) {
        const auto whole = model->acquire(1);
        const auto part = whole.numel() / 2;
        whole.narrow(0, part * groups.shard->rank(), 1).add_(1);
        model->release(1);
      }
      world.barrier();
      model->check_replicas();
    });
  };
  for (const auto dtype : {at::kFloat, at::kBFloat16})
    for (const auto use : {shard::Use::trained, shard::Use::frozen}) {
      const std::string model = use == shard::Use::trained ? "trained" : "frozen";
      EXPECT_NO_THROW(steps(-1, use, dtype));
      EXPECT_SAYS(test::message_of<base::PeerError>([&] { steps(2, use, dtype); }),
                  "rank 2 holds other weights of the " + model + " model than its replica, rank 0");
      EXPECT_SAYS(test::message_of<base::PeerError>([&] { steps(3, use, dtype); }),
                  "rank 3 holds other weights of the " + model + " model than its replica, rank 1");
    }
}

// Launchers may give one machine ranks 0 and 3 and the other 1 and 2.  Then ranks of one machine have
// different places among their replicas, and one of them reads a unit for both.  Nothing is read twice.
TEST(Replicas, WeightsAreReadOnceWhereRanksOfAMachineAreInAnyOrder) {
  const Models models(false);
  for (const bool common : {true, false}) {
    std::atomic<std::int64_t> elements_read = 0;
    auto source = model::source_of(models.student);
    source.read = [&elements_read, read = source.read](std::size_t unit, std::int64_t begin,
                                                       const at::Tensor& part) {
      elements_read += part.numel();
      read(unit, begin, part);
    };
    test::on_ranks(
        4,
        [&](comm::Group& world) {
          shard::Groups groups{.world = &world, .shard = {}, .replica = {}, .ahead = true};
          groups.shard = world.split(world.rank() == 0 || world.rank() == 3 ? 0 : 1, "shard");
          groups.replica = world.split(groups.shard->rank(), "replica");
          const auto student =
              shard::sharded_parameters(source, shard::Use::trained, at::kBFloat16, at::kCPU, groups);
          for (std::int64_t unit = 0; unit < student->layout().num_units(); ++unit)
            test::expect_identical(student->whole_master(unit),
                                   models.student.units[base::to_size(unit)].to(at::kFloat),
                                   "master weights");
          world.barrier();
        },
        common);
    std::int64_t elements = 0;
    for (const auto& unit : models.student.units) elements += unit.numel();
    EXPECT_EQ(elements_read, elements);
  }
}

TEST(Groups, WhoseShardsDoNotDivideTheRanksAreRefused) {
  EXPECT_SAYS(test::message_of<base::UsageError>(
                  [] { test::on_ranks(3, [](comm::Group& world) { (void)shard::make_groups(world, 2); }); }),
              "2 ranks do not divide 3 ranks");
}

}  // namespace
}  // namespace retort
