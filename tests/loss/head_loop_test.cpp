// The head loop against the losses on all rows at once, by autograd.
#include "retort/loss/head_loop.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "retort/ops/reference/formulas.h"
#include "support/tolerance.h"

namespace retort {
namespace {

using loss::LossKind;
using test::expect_close;

struct Side {
  at::Tensor hidden_ND, norm_D, matrix_VD;
};

Side make_side(std::int64_t tokens, std::int64_t hidden, std::int64_t vocab) {
  return {at::randn({tokens, hidden}, at::kDouble), at::rand({hidden}, at::kDouble) + 0.5,
          at::randn({vocab, hidden}, at::kDouble)};
}

at::Tensor logits_of(const Side& side, double eps) {
  return at::mm(ops::reference::rms_norm(side.hidden_ND, side.norm_D, eps), side.matrix_VD.t());
}

// Cross-entropy and KL over all rows at once, by autograd; `counted` rows of the step.  The first `tokens`
// rows of both heads are compared.
at::Tensor whole_loss(const Side& student, const Side& teacher, const at::Tensor& targets, bool reverse,
                      double counted, std::int64_t tokens) {
  const auto s = logits_of(student, 1e-5), t = logits_of(teacher, 1e-6);
  return (0.25 * ops::reference::cross_entropy(s, targets).sum() +
          ops::reference::kl_divergence(s.narrow(1, 0, tokens), t.narrow(1, 0, tokens), targets, 3, reverse,
                                        true)
              .sum()) /
         counted;
}

// Rows of the heads of student and teacher, and how many of them are tokens; the others are padding.
struct Rows {
  std::int64_t student, teacher, tokens;
};

void expect_head_loop_by_autograd(const Rows& rows, std::int64_t num_tokens) {
  constexpr double kCounted = 100;  // more than here: other micro-batches have the rest
  for (const bool reverse : {false, true}) {
    at::manual_seed(5);
    Side student = make_side(37, 12, rows.student);
    const Side teacher = make_side(37, 20, rows.teacher);
    auto targets = at::randint(0, rows.tokens, {37}, at::kLong);
    targets[0] = targets[36] = -1;
    for (auto* x : {&student.hidden_ND, &student.norm_D, &student.matrix_VD}) x->set_requires_grad(true);
    const auto expected = whole_loss(student, teacher, targets, reverse, kCounted, rows.tokens);
    expected.backward();

    auto losses =
        loss::make_losses({{.kind = LossKind::cross_entropy, .weight = 0.25},
                           {.kind = LossKind::kl_divergence,
                            .weight = 1,
                            .temperature = 3,
                            .direction = reverse ? loss::KlDirection::reverse : loss::KlDirection::forward}},
                          {.num_tokens = num_tokens});
    for (const std::int64_t chunk_rows : {1, 5, 8, 36, 37, 100}) {
      const model::HeadWeights gradients{at::zeros({12}, at::kDouble),
                                         at::zeros({rows.student, 12}, at::kDouble)};
      const auto sums_L = at::zeros({2}, at::kDouble);
      const auto ghidden_ND = loss::head_loop(
          losses, {{student.norm_D.detach(), student.matrix_VD.detach()}, 1e-5, student.hidden_ND.detach()},
          loss::logits_of_model({{teacher.norm_D, teacher.matrix_VD}, 1e-6, teacher.hidden_ND}, num_tokens),
          targets, kCounted, chunk_rows, gradients, sums_L);
      EXPECT_NEAR((0.25 * sums_L[0] + sums_L[1]).item<double>() / kCounted, expected.item<double>(), 1e-12);
      expect_close(ghidden_ND, student.hidden_ND.grad(), 1e-11, "hidden");
      expect_close(gradients.norm_D, student.norm_D.grad(), 1e-11, "norm");
      expect_close(gradients.matrix_VD, student.matrix_VD.grad(), 1e-11, "matrix");
    }
  }
}

TEST(HeadLoop, EqualsTheUnchunkedLossesByAutogradForEveryChunkSize) {
  expect_head_loop_by_autograd({.student = 53, .teacher = 53, .tokens = 53}, 0);
}

TEST(HeadLoop, LeavesPaddingRowsOutOfBothDistributions) {
  for (const Rows& rows : {Rows{53, 64, 53}, Rows{64, 53, 53}, Rows{60, 64, 53}, Rows{64, 64, 53}})
    expect_head_loop_by_autograd(rows, rows.tokens);
}

// One micro-batch after another: gradients and sums of a step add up.
TEST(HeadLoop, AddsToWhatEarlierMicroBatchesLeft) {
  at::manual_seed(6);
  const Side student = make_side(9, 12, 53);
  const auto targets = at::randint(0, 53, {9}, at::kLong);
  const auto losses = loss::make_losses({{.kind = LossKind::cross_entropy}}, {});
  const auto run = [&](const model::HeadWeights& gradients, const at::Tensor& sums_L) {
    return loss::head_loop(losses, {{student.norm_D, student.matrix_VD}, 1e-5, student.hidden_ND}, {},
                           targets, 18, 4, gradients, sums_L);
  };
  const model::HeadWeights once{at::zeros({12}, at::kDouble), at::zeros({53, 12}, at::kDouble)};
  const model::HeadWeights twice{once.norm_D.clone(), once.matrix_VD.clone()};
  const auto sum_of_one = at::zeros({1}, at::kDouble), sum_of_two = at::zeros({1}, at::kDouble);
  run(once, sum_of_one);
  run(twice, sum_of_two);
  run(twice, sum_of_two);
  EXPECT_GT(once.matrix_VD.abs().max().item<double>(), 0);
  expect_close(twice.matrix_VD, once.matrix_VD * 2, test::tolerance(at::kDouble), "matrix");
  expect_close(twice.norm_D, once.norm_D * 2, test::tolerance(at::kDouble), "norm");
  EXPECT_DOUBLE_EQ(sum_of_two.item<double>(), 2 * sum_of_one.item<double>());
}

TEST(HeadLoop, RowsWithoutATargetChangeNothing) {
  at::manual_seed(7);
  const Side student = make_side(5, 12, 53), teacher = make_side(5, 12, 53);
  const auto losses =
      loss::make_losses({{.kind = LossKind::cross_entropy}, {.kind = LossKind::kl_divergence}}, {});
  const model::HeadWeights gradients{at::zeros({12}, at::kDouble), at::zeros({53, 12}, at::kDouble)};
  const auto sums_L = at::zeros({2}, at::kDouble);
  const auto ghidden_ND = loss::head_loop(
      losses, {{student.norm_D, student.matrix_VD}, 1e-5, student.hidden_ND},
      loss::logits_of_model({{teacher.norm_D, teacher.matrix_VD}, 1e-5, teacher.hidden_ND}, 0),
      at::full({5}, -1, at::kLong), 10, 2, gradients, sums_L);
  for (const auto& zero : {ghidden_ND, gradients.norm_D, gradients.matrix_VD, sums_L})
    EXPECT_EQ(zero.abs().max().item<double>(), 0);
}

}  // namespace
}  // namespace retort
