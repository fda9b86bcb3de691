// Losses on a chunk of logits, by kernels and by their own mathematics, against the formulas in double and
// their autograd.  Three programs are linked with this: for the kernels of CPUs, for a device without
// kernels, and for the kernels of kernels/cuda/.
#include "retort/loss/chunk.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <limits>

#include "loss/formulas.h"
#include "retort/kernels/device/pieces.h"
#include "retort/loss/losses.h"
#include "retort/ops/tensor_allocator.h"
#include "support/tolerance.h"

namespace retort {
namespace {

using loss::Computed;
using loss::LossKind;
using test::expect_close;

class Counted final : public ::testing::Environment {
 public:
  void SetUp() override { ops::install_tensor_allocator(); }
};
[[maybe_unused]] const auto* const kCounting = ::testing::AddGlobalTestEnvironment(new Counted);

// Half of the squared difference of the logits: a loss that no kernel knows.
class SquaredDifference final : public loss::LogitLoss {
 public:
  SquaredDifference() : LogitLoss({.name = "squared_difference", .needs_teacher = true}, 0.1) {}
  loss::RowLosses of(const loss::LogitRows& rows) const override {
    const auto difference_RK = rows.student_RK() - rows.teacher_RK;
    return {
        .value_R1 = difference_RK.square().sum(-1, true), .gradient_RK = difference_RK, .value_scale = 0.5};
  }
  std::int64_t matrices() const override { return 2; }
};

// Where the operands lie: RETORT_TEST_ON=cuda puts them on an accelerator, with a program that was built for
// one.
at::Tensor placed(const at::Tensor& x) {
  static const char* named = std::getenv("RETORT_TEST_ON");
  return x.to(at::Device(named && *named ? named : "cpu"));
}

// Whether a CPU runs the kernels for CUDA, one thread after the other.  Each row is a block of its own there.
bool runs_blocks_in_turn() {
  return placed(at::zeros({1})).is_cpu() && ops::path_of(at::kCPU) == ops::Path::cuda;
}

// Several pieces of the loops of CPUs and of compositions, and every block of a kernel that differs.
std::int64_t many_rows() {
  return runs_blocks_in_turn() ? 9 : 1100;
}

// A chunk of a model that is sure of some tokens, far from zero.  Every fourth row does not count, and the
// first of those is no number.
loss::LogitRows make_chunk(std::int64_t rows, std::int64_t vocab, std::int64_t shared, at::ScalarType type) {
  const auto offset = at::randn({rows, 1}, at::kDouble) * 20;
  const auto logits = [&] { return (at::randn({rows, vocab}, at::kDouble) * 3 + offset).to(type); };
  auto student = logits(), targets = at::randint(0, shared, {rows}, at::kLong);
  for (std::int64_t row = 3; row < rows; row += 4) targets[row] = -1;
  if (rows > 3) student[3].fill_(std::numeric_limits<double>::quiet_NaN());
  return {placed(student), placed(logits()).narrow(1, 0, shared), placed(targets)};
}

constexpr double kStepTargets = 2;

// Sums of the losses, and the gradient of their weighted sum over kStepTargets.
struct Results {
  at::Tensor values_L, gradient_NV;
};

Results by_autograd(const loss::LogitLosses& losses, const std::vector<loss::LossOptions>& options,
                    const loss::LogitRows& chunk) {
  const auto counted = at::nonzero(chunk.targets_R.ge(0)).squeeze(1);
  const auto rows = [&](const at::Tensor& x) { return x.to(at::kDouble).index_select(0, counted); };
  const auto student = rows(chunk.student_RV).set_requires_grad(true);
  const auto teacher = rows(chunk.teacher_RK), targets = chunk.targets_R.index_select(0, counted);
  Results expected{at::zeros({std::ssize(losses)}, student.options().requires_grad(false)),
                   at::zeros(chunk.student_RV.sizes(), student.options().requires_grad(false))};
  auto sum = at::zeros({}, expected.values_L.options());
  for (std::size_t i = 0; i < losses.size(); ++i) {
    const auto value = i < options.size()
                           ? test::loss_formula(options[i], student, teacher, targets).sum()
                           : 0.5 * (student.narrow(1, 0, teacher.size(1)) - teacher).square().sum();
    expected.values_L[static_cast<std::int64_t>(i)] = value.detach();
    sum = sum + losses[i]->weight() / kStepTargets * value;
  }
  sum.backward();
  expected.gradient_NV.index_copy_(0, counted, student.grad());
  return expected;
}

// The losses of the options, and behind them `other` where there is one.
loss::LogitLosses made(const std::vector<loss::LossOptions>& options, bool other) {
  auto losses = options.empty() ? loss::LogitLosses() : loss::make_losses(options, {}).on_logits;
  if (other) losses.push_back(std::make_unique<SquaredDifference>());
  return losses;
}

class LossesOfChunk : public testing::TestWithParam<at::ScalarType> {
 protected:
  void SetUp() override { at::manual_seed(5); }
  at::ScalarType statistics() const { return GetParam() == at::kDouble ? at::kDouble : at::kFloat; }

  void expect_right(const std::vector<loss::LossOptions>& options, const loss::LogitRows& chunk, bool other) {
    const auto losses = made(options, other);
    const auto expected = by_autograd(losses, options, chunk);
    for (const auto computed : {Computed::in_kernels, Computed::by_composition}) {
      SCOPED_TRACE(computed == Computed::in_kernels ? "in kernels" : "by composition");
      const auto gradient = at::full_like(chunk.student_RV, 77);
      const auto values_L = loss::losses_of_chunk(losses, chunk, kStepTargets, gradient, computed);
      for (std::int64_t i = 0; i < values_L.numel(); ++i) {
        const double value = expected.values_L[i].item<double>();
        EXPECT_NEAR(values_L[i].item<double>(), value,
                    10 * test::tolerance(statistics()) * std::max(1.0, std::abs(value)));
      }
      expect_close(gradient, expected.gradient_NV, test::tolerance(GetParam()), "gradient");
      const auto student = chunk.student_RV.clone();
      const auto again = loss::losses_of_chunk(losses, {student, chunk.teacher_RK, chunk.targets_R},
                                               kStepTargets, student, computed);
      test::expect_identical(again, values_L, "values of logits that become the gradient");
      test::expect_identical(student, gradient, "written over the logits");
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Types, LossesOfChunk, testing::Values(at::kFloat, at::kDouble, at::kBFloat16),
                         [](const auto& tested) { return std::string(at::toString(tested.param)); });

// Rows and columns such as a thread of a kernel takes one by one and several at a time, once and twice, and
// of several pieces of a composition.
TEST_P(LossesOfChunk, EqualAutogradEachAlone) {
  for (const auto& [rows, vocab] : std::vector<std::pair<std::int64_t, std::int64_t>>{
           {9, 2}, {9, 133}, {3, 2056}, {3, 4104}, {many_rows(), 133}})
    for (const auto shared : {vocab, std::max<std::int64_t>(2, vocab - 2)}) {
      const auto chunk = make_chunk(rows, vocab, shared, GetParam());
      for (const auto& options : test::losses_on_logits()) {
        SCOPED_TRACE(test::described(options));
        expect_right({options}, chunk, false);
      }
    }
}

TEST_P(LossesOfChunk, EqualAutogradInPiecesOfAnAccelerator) {
  if (GetParam() != at::kFloat || ops::path_of(at::kCPU) != ops::Path::device) return;  // it takes its time
  const auto chunk =
      make_chunk(2, kernels::device::kPieceElements / 2 + 1, kernels::device::kPieceElements / 2, GetParam());
  // Others begin with libtorch's softmax, which adds up so many columns in float32 and is a thousandth off.
  for (const auto& options : test::losses_on_logits()) {
    const bool by_pieces = options.kind == LossKind::cross_entropy || options.kind == LossKind::kl_divergence;
    if (options.temperature == 1 && by_pieces) expect_right({options}, chunk, false);
  }
}

// Lists in which kernels know all losses, some of them and none, in either order.
TEST_P(LossesOfChunk, EqualAutogradInMixedLists) {
  for (const auto shared : {133, 120}) {
    const auto chunk = make_chunk(many_rows(), 133, shared, GetParam());
    const auto all = test::losses_on_logits();
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto& one = all[i];
      const auto& two = all[(i * 7 + 3) % all.size()];  // of every kind beside every kind
      SCOPED_TRACE(test::described(one) + " beside " + test::described(two));
      expect_right({one}, chunk, true);
      if (one.kind == two.kind) continue;
      expect_right({one, two}, chunk, false);
      expect_right({two, one}, chunk, true);
    }
  }
}

TEST_P(LossesOfChunk, OfEqualModelsAreZeroWithoutGradient) {
  const auto logits = placed((at::randn({4, 100}, at::kDouble) * 5).to(GetParam()));
  for (const auto& options : test::losses_on_logits()) {
    if (!loss::traits_of(options.kind).needs_teacher) continue;
    SCOPED_TRACE(test::described(options));
    for (const auto computed : {Computed::in_kernels, Computed::by_composition}) {
      const auto gradient = at::ones_like(logits);
      const auto values_L = loss::losses_of_chunk(made({options}, false),
                                                  {logits, logits.clone(), placed(at::zeros({4}, at::kLong))},
                                                  1, gradient, computed);
      EXPECT_EQ(values_L[0].item<double>(), 0);
      EXPECT_EQ(gradient.abs().max().item<double>(), 0);
    }
  }
}

TEST_P(LossesOfChunk, OfNoLossHaveNoGradient) {
  const auto gradient = placed(at::ones({3, 40}).to(GetParam()));
  EXPECT_EQ(loss::losses_of_chunk({}, {gradient.clone(), {}, placed(at::zeros({3}, at::kLong))}, 1, gradient)
                .numel(),
            0);
  EXPECT_EQ(gradient.abs().max().item<double>(), 0);
}

TEST(LossesOfChunkTest, GiveTheSameBitsForAnyNumberOfThreads) {
  at::manual_seed(2);
  const auto chunk = make_chunk(1700, 333, 330, at::kFloat);
  std::vector<at::Tensor> values, gradients;
  for (const int threads : {1, 2, 3}) {
    at::set_num_threads(threads);
    gradients.push_back(at::empty_like(chunk.student_RV));
    values.push_back(loss::losses_of_chunk(
        made({{.kind = LossKind::cross_entropy}, {.kind = LossKind::kl_divergence}}, true), chunk, 1700,
        gradients.back()));
  }
  at::set_num_threads(2);
  for (const auto i : {1U, 2U}) {
    test::expect_identical(values[i], values[0]);
    test::expect_identical(gradients[i], gradients[0]);
  }
}

// Of what it holds at its peak beside its arguments and its result, in bytes.
std::int64_t held_by(const loss::LogitLosses& losses, const loss::LogitRows& chunk, Computed computed) {
  const auto gradient = at::empty_like(chunk.student_RV);
  const auto before = ops::live_tensor_bytes();
  ops::reset_peak_tensor_bytes();
  const auto values_L = loss::losses_of_chunk(losses, chunk, 1, gradient, computed);
  return ops::peak_tensor_bytes() - before - (ops::live_tensor_bytes() - before);
}

// What a loss says that it holds is what the plan counts.
TEST(LossesOfChunkTest, HoldWhatThePlanIsTold) {
  constexpr std::int64_t kSmallTensors = 1 << 18;  // of a number each row
  // Of several pieces of an accelerator, too.
  const std::int64_t rows = runs_blocks_in_turn() ? 5 : 4500, vocab = runs_blocks_in_turn() ? 1 << 20 : 1024;
  const auto path = ops::path_of(at::kCPU);
  at::set_num_threads(1);
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    const auto chunk = make_chunk(rows, vocab, vocab - 24, type);
    for (const auto& options : test::losses_on_logits())
      for (const bool other : {false, true})
        for (const auto computed : {Computed::in_kernels, Computed::by_composition}) {
          SCOPED_TRACE(test::described(options));
          const auto losses = made({options}, other);
          auto read = chunk;
          if (!loss::traits_of(options.kind).needs_teacher && !other) read.teacher_RK = at::Tensor();
          const auto item_bytes = static_cast<std::int64_t>(chunk.student_RV.element_size());
          const auto told = loss::composed_bytes(loss::composed_matrices(losses, path, item_bytes, computed),
                                                 path, rows, vocab, item_bytes);
          const auto held = held_by(losses, read, computed);
          EXPECT_LE(held, told + kSmallTensors);
          EXPECT_GE(held, told / 2 - kSmallTensors);
        }
  }
  at::set_num_threads(2);
}

// T = 3, z_student = [1, 2, 0.5, -1], z_teacher = [2, 1, 0, -2]: with p = softmax(z / 3),
// 9 * sum p_t (log p_t - log p_s), and 9 * sum p_s (log p_s - log p_t) for the reverse; computed in double
// with NumPy.
TEST(KlDivergence, GivesTheNumbersComputedByHand) {
  const auto student = at::tensor({1.0, 2.0, 0.5, -1.0}, at::kDouble).unsqueeze(0);
  const auto teacher = at::tensor({2.0, 1.0, 0.0, -2.0}, at::kDouble).unsqueeze(0);
  auto gradient = at::zeros_like(student);
  const auto value = [&](loss::KlDirection direction, bool squared) {
    const auto losses = made({{.kind = LossKind::kl_divergence,
                               .temperature = 3,
                               .direction = direction,
                               .temperature_squared = squared}},
                             false);
    return loss::losses_of_chunk(losses, {student, teacher, at::zeros({1}, at::kLong)}, 1, gradient)[0]
        .item<double>();
  };
  EXPECT_NEAR(value(loss::KlDirection::forward, true), 0.40072925093333167, 1e-14);
  expect_close(gradient, 3 * (at::softmax(student / 3, -1) - at::softmax(teacher / 3, -1)), 1e-13);
  EXPECT_NEAR(value(loss::KlDirection::reverse, true), 0.37858291252855186, 1e-14);
  EXPECT_NEAR(value(loss::KlDirection::forward, false), 0.40072925093333167 / 9, 1e-14);
}

}  // namespace
}  // namespace retort
