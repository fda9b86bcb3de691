// The engine and the loop touch parameters only between acquire and release, and gradients only until reduce.
// This keeps the place where parameters are spread over ranks.
#include "train/lent_parameters.h"

#include "retort/base/error.h"
#include "retort/data/windows.h"
#include "retort/shard/engine.h"
#include "retort/train/batches.h"
#include "support/tolerance.h"
#include "train/training.h"

namespace retort {
namespace {

using test::LentParameters;
using test::Training;
using test::Witness;

constexpr std::int64_t kMicroBatches = 4, kLength = 24;

struct Case {
  bool tied = false;
  at::ScalarType dtype = at::kFloat;
  std::int64_t wave = 1;
};

std::vector<shard::MicroBatch> random_batches() {
  at::manual_seed(3);
  std::vector<shard::MicroBatch> batches;
  for (std::int64_t i = 0; i < kMicroBatches; ++i)
    batches.push_back({.ids_N = at::randint(272, {2 * kLength}, at::kLong),
                       .targets_N = at::randint(272, {2 * kLength}, at::kLong),
                       .bounds = {0, kLength, 2 * kLength},
                       .starts = {0, 7, kLength, 2 * kLength},
                       .num_targets = 2 * kLength});
  return batches;
}

struct Models {
  explicit Models(const Case& test)
      : student(shard::resident_parameters(model::random_weights(config(2, test), 1, at::kFloat, at::kCPU),
                                           shard::Use::trained, test.dtype)),
        teacher(shard::resident_parameters(model::random_weights(config(3, test), 2, test.dtype, at::kCPU),
                                           shard::Use::frozen, test.dtype)),
        losses(loss::make_losses(loss::paper_distillation_losses(), {2, 3, {}})) {}
  static architecture::Config config(std::int64_t blocks, const Case& test) {
    return test::config_of({.blocks = blocks, .tied = test.tied});
  }
  std::unique_ptr<shard::Parameters> student, teacher;
  loss::Losses losses;
};

class Lent : public ::testing::TestWithParam<Case> {};

TEST_P(Lent, GradientsAreThoseOfResidentParametersAndEachWaveReducesAUnitOnce) {
  const auto batches = random_batches();
  const auto group = comm::single_group();
  const shard::EngineOptions options{.wave = GetParam().wave, .head_rows = 16};
  Models plain(GetParam()), inner(GetParam());
  LentParameters student(std::move(inner.student), shard::Use::trained),
      teacher(std::move(inner.teacher), shard::Use::frozen);
  shard::PhaseClock clock;
  shard::ModelTeacher plain_teacher(*plain.teacher), lent_teacher(teacher);
  shard::Engine expected(*plain.student, &plain_teacher, plain.losses, *group, clock, options);
  shard::Engine engine(student, &lent_teacher, inner.losses, *group, clock, options);
  for (int step = 0; step < 2; ++step) {
    student.forget_counts();
    EXPECT_EQ(engine.step(batches).loss, expected.step(batches).loss);
    for (std::int64_t unit = 0; unit < student.layout().num_units(); ++unit) {
      // Several waves are added up one after the other here, and token by token there.
      if (GetParam().wave >= kMicroBatches)
        test::expect_identical(student.own_gradient(unit), plain.student->own_gradient(unit), "gradient");
      else
        test::expect_close(student.own_gradient(unit), plain.student->own_gradient(unit),
                           test::tolerance(at::kFloat), "gradient");
      const auto& counts = student.counts()[static_cast<std::size_t>(unit)];
      EXPECT_EQ(counts.reduced, (kMicroBatches + GetParam().wave - 1) / GetParam().wave) << "unit " << unit;
      EXPECT_EQ(counts.acquired, counts.released) << "unit " << unit;
    }
    EXPECT_EQ(student.most_held(), 1);
    EXPECT_EQ(teacher.most_held(), 1);
  }
}

// Per wave: forward and backward of each student block, the rest once; a tied matrix serves as embedding and
// as head.
TEST_P(Lent, AWaveGathersEachUnitOnceForwardAndOnceBackward) {
  const auto batches = random_batches();
  const auto group = comm::single_group();
  Models inner(GetParam());
  LentParameters student(std::move(inner.student), shard::Use::trained),
      teacher(std::move(inner.teacher), shard::Use::frozen);
  shard::PhaseClock clock;
  shard::ModelTeacher lent_teacher(teacher);
  shard::Engine engine(student, &lent_teacher, inner.losses, *group, clock,
                       {.wave = GetParam().wave, .head_rows = 16});
  engine.step(batches);
  const auto waves = (kMicroBatches + GetParam().wave - 1) / GetParam().wave;
  const auto expect_counts = [&](const LentParameters& parameters, std::int64_t passes_of_a_block) {
    for (std::int64_t unit = 0; unit < parameters.layout().num_units(); ++unit) {
      const auto kind = parameters.layout().units[static_cast<std::size_t>(unit)].kind;
      const auto passes = kind == architecture::Unit::Kind::block ? passes_of_a_block
                          : unit == 0 && GetParam().tied          ? 2
                                                                  : 1;
      EXPECT_EQ(parameters.counts()[static_cast<std::size_t>(unit)].acquired, waves * passes)
          << "unit " << unit;
    }
  };
  expect_counts(student, 2);
  expect_counts(teacher, 1);
}

INSTANTIATE_TEST_SUITE_P(Engine, Lent,
                         ::testing::Values(Case{false, at::kFloat, 1}, Case{false, at::kFloat, 2},
                                           Case{false, at::kFloat, 4}, Case{true, at::kFloat, 1},
                                           Case{true, at::kFloat, 3}, Case{false, at::kBFloat16, 2},
                                           Case{true, at::kBFloat16, 4}));

// Kept activations are no views of the weights.
TEST(LentParameters, MayGoWhileWhatWasComputedFromThemIsKept) {
  const auto batches = random_batches();
  const auto group = comm::single_group();
  Models plain({}), inner({});
  LentParameters student(std::move(inner.student), shard::Use::trained),
      teacher(std::move(inner.teacher), shard::Use::frozen);
  shard::PhaseClock clock;
  const shard::EngineOptions options{.wave = kMicroBatches, .head_rows = 16, .keep_activations = true};
  shard::ModelTeacher plain_teacher(*plain.teacher), lent_teacher(teacher);
  shard::Engine expected(*plain.student, &plain_teacher, plain.losses, *group, clock, options);
  shard::Engine engine(student, &lent_teacher, inner.losses, *group, clock, options);
  EXPECT_EQ(engine.step(batches).loss, expected.step(batches).loss);
  for (std::int64_t unit = 0; unit < student.layout().num_units(); ++unit)
    test::expect_identical(student.own_gradient(unit), plain.student->own_gradient(unit), "gradient");
}

class LentTrainingTest : public test::TrainingTest {};

TEST_F(LentTrainingTest, AStageWithEvaluationAndRestartEndsWithTheSameBits) {
  test::Given given;
  given.student.tied = true;
  given.options = test::small_options(4);
  given.options.evaluate_every_steps = 2;
  given.options.checkpoint_every_steps = 1;
  given.options.recompute = train::Recompute::always;
  given.sources = {source("one", test::made_up_documents(40))};
  data::WindowReader reader(given.sources[0], data::Split::all, {.context = 32, .tokens = 100}, given.encode,
                            test::kSpecial);
  std::vector<data::Sequence> windows;
  for (data::Sequence window; reader.next(window);) windows.push_back(window);
  const std::vector<train::HeldOutSet> held_out = {{"one", train::make_micro_batches(windows, 2, at::kCPU)}};
  bool first = true;
  std::vector<LentParameters*> lent_parameters;
  const auto lend = [&](std::unique_ptr<shard::Parameters> inner) {
    const auto use = std::exchange(first, false) ? shard::Use::trained : shard::Use::frozen;
    auto parameters = std::make_unique<LentParameters>(std::move(inner), use);
    lent_parameters.push_back(parameters.get());
    return parameters;
  };

  Training resident(given, place("resident"));
  Witness witness;
  (void)resident.run(witness, held_out);
  {
    Training lent(given, place("lent"), lend);
    Witness stopping;
    stopping.stop_after = 2;
    EXPECT_FALSE(lent.run(stopping, held_out).finished);
  }
  lent_parameters.clear();
  first = true;
  Training lent(given, place("lent"), lend);
  EXPECT_TRUE(lent.run(witness, held_out).finished);
  EXPECT_EQ(lent.weights_hash(), resident.weights_hash());
  // After steps 3 and 4, before their checkpoints.
  ASSERT_EQ(lent_parameters.size(), 2U);
  for (const auto* parameters : lent_parameters) EXPECT_EQ(parameters->replica_checks(), 2);
  EXPECT_EQ(test::lines_without_clocks(directory_ / "lent"),
            test::lines_without_clocks(directory_ / "resident"));
}

}  // namespace
}  // namespace retort
