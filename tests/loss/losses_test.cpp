// SquareHead, layer maps and the head loop.
#include "retort/loss/losses.h"

#include <gtest/gtest.h>

#include "retort/base/error.h"
#include "retort/loss/head_loop.h"
#include "retort/loss/layer_map.h"
#include "retort/ops/reference.h"
#include "support/message_of.h"
#include "support/tolerance.h"

namespace retort {
namespace {

using loss::LossKind;
using test::expect_close;

loss::SquareHead square_head(double eps = 0, double weight = 1) {
  return {loss::LossOptions{.kind = LossKind::squarehead, .weight = weight, .eps = eps}, {0}};
}

double value_of(const at::Tensor& student, const at::Tensor& teacher,
                const std::vector<std::int64_t>& bounds = {0, 6, 11}) {
  auto grad = at::empty_like(student);
  return square_head().add(student, teacher, bounds, 11, grad);
}

TEST(SquareHead, IsZeroForTheTeacherOneForZeroFourForItsNegative) {
  at::manual_seed(1);
  const auto teacher = at::randn({11, 8}, at::kDouble);
  EXPECT_EQ(value_of(teacher, teacher.clone()), 0);
  EXPECT_NEAR(value_of(at::zeros_like(teacher), teacher), 1, 1e-14);
  EXPECT_NEAR(value_of(-teacher, teacher), 4, 1e-14);
}

TEST(SquareHead, DoesNotDependOnTheScaleOfBothNorOnTheGroupingOfSequences) {
  at::manual_seed(2);
  const auto student = at::randn({11, 8}, at::kDouble), teacher = at::randn({11, 8}, at::kDouble);
  const double value = value_of(student, teacher);
  EXPECT_NEAR(value_of(student * 1000, teacher * 1000), value, 1e-12);
  const auto part = [&](std::int64_t begin, std::int64_t count) {
    return value_of(student.narrow(0, begin, count), teacher.narrow(0, begin, count), {0, count});
  };
  EXPECT_NEAR(part(0, 6) + part(6, 5), value, 1e-14);
}

TEST(SquareHead, ValueAndGradientEqualTheFormulaAlsoWithAWiderTeacher) {
  at::manual_seed(3);
  for (const std::int64_t teacher_width : {8, 10, 17}) {
    const auto student = at::randn({11, 8}, at::kDouble).set_requires_grad(true);
    const auto teacher = at::randn({11, teacher_width}, at::kDouble),
               pooled = loss::pool_features(teacher, 8);
    auto expected = at::zeros({}, at::kDouble);
    for (const auto& [begin, count] : {std::pair<std::int64_t, std::int64_t>{0, 6}, {6, 5}}) {
      const auto s = student.narrow(0, begin, count), t = pooled.narrow(0, begin, count);
      expected =
          expected + (s - t).square().mean() / (t.square().mean() + 0.01) * static_cast<double>(count) / 44.0;
    }
    (expected * 0.5).backward();
    auto grad = at::empty_like(student).detach();
    // Four student layers, of which this is one: the mean over layers divides by four (44 = 4 * 11).
    const loss::SquareHead head({.kind = LossKind::squarehead, .weight = 0.5, .eps = 0.01}, {0, 1, 2, 3});
    EXPECT_NEAR(head.add(student.detach(), teacher, {0, 6, 11}, 11, grad), expected.item<double>(), 1e-14);
    expect_close(grad, student.grad(), 1e-13);
  }
}

TEST(SquareHead, ComparesWithTheFeaturesThatWereKept) {
  const auto teacher = at::randn({6, 5}, at::kDouble);
  const std::vector<std::int64_t> kept = {0, 2, 3};
  const loss::SquareHead head({.kind = LossKind::squarehead, .weight = 1, .eps = 0}, {0}, kept);
  auto grad = at::zeros({6, 3}, at::kDouble);
  const auto same = at::stack({teacher.select(1, 0), teacher.select(1, 2), teacher.select(1, 3)}, 1);
  EXPECT_NEAR(head.add(same, teacher, {0, 6}, 6, grad), 0, 1e-15);
  EXPECT_NEAR(head.add(at::zeros({6, 3}, at::kDouble), teacher, {0, 6}, 6, grad), 1, 1e-12);
}

TEST(SquareHead, PoolsFeaturesIntoBinsThatMayShareElements) {
  const auto x = at::arange(10, at::kDouble).unsqueeze(0);
  expect_close(loss::pool_features(x, 4), at::tensor({1.0, 3.0, 6.0, 8.0}, at::kDouble).unsqueeze(0), 1e-15);
  expect_close(loss::pool_features(x, 10), x, 0);
}

TEST(LayerMap, OfRelativeDepthRoundsHalfUpAndEndsAtTheLastBlock) {
  const auto map = [](std::int64_t student, std::int64_t teacher) {
    return loss::layer_map(loss::LayerMap::relative_depth, student, teacher, {});
  };
  using Map = std::vector<std::int64_t>;
  EXPECT_EQ(map(4, 4), (Map{0, 1, 2, 3}));
  EXPECT_EQ(map(2, 4), (Map{1, 3}));
  EXPECT_EQ(map(2, 3), (Map{1, 2}));        // 1.5 rounds to 2
  EXPECT_EQ(map(4, 6), (Map{1, 2, 4, 5}));  // 1.5, 3, 4.5, 6
  EXPECT_EQ(map(3, 7), (Map{1, 4, 6}));     // 2.33, 4.67, 7
  EXPECT_EQ(map(1, 9), (Map{8}));
}

TEST(LayerMap, OfSurvivorsFollowsTheLineage) {
  using Map = std::vector<std::int64_t>;
  EXPECT_EQ(loss::layer_map(loss::LayerMap::surviving, 3, 8, {0, 3, 7}), (Map{0, 3, 7}));
  EXPECT_EQ(loss::layer_map(loss::LayerMap::before_survivor, 3, 8, {0, 3, 6}), (Map{2, 5, 7}));
}

TEST(LayerMap, RefusesALineageOfAnotherTeacherAndADeeperStudent) {
  const auto refused = [](loss::LayerMap kind, std::int64_t student, std::int64_t teacher,
                          std::vector<std::int64_t> kept) {
    return test::message_of<base::UsageError>([&] { loss::layer_map(kind, student, teacher, kept); });
  };
  EXPECT_SAYS(refused(loss::LayerMap::relative_depth, 5, 4, {}), "5");
  EXPECT_SAYS(refused(loss::LayerMap::surviving, 3, 8, {0, 3}), "lineage");
  EXPECT_SAYS(refused(loss::LayerMap::before_survivor, 2, 4, {0, 4}), "lineage");
}

TEST(Losses, RefuseATeacherThatTheStudentWasNotCutFrom) {
  const loss::Blocks blocks{.student = 2, .teacher = 4, .survivors = {0, 2}, .survivors_of = 3};
  for (const auto kind : {loss::LayerMap::surviving, loss::LayerMap::before_survivor}) {
    const std::vector<loss::LossOptions> options{{.kind = LossKind::squarehead, .layer_map = kind}};
    EXPECT_SAYS(test::message_of<base::UsageError>([&] { loss::make_losses(options, blocks); }),
                "cut from a model of 3 blocks, the teacher has 4");
    auto same = blocks;
    same.survivors_of = 4;
    EXPECT_NO_THROW(loss::make_losses(options, same));
  }
  EXPECT_NO_THROW(loss::make_losses({{.kind = LossKind::squarehead}}, blocks)) << "relative depth";
}

TEST(Losses, RefuseNoneAndTheSameTwice) {
  EXPECT_SAYS(test::message_of<base::UsageError>([] { loss::make_losses({}, {}); }), "at least one loss");
  EXPECT_SAYS(test::message_of<base::UsageError>([] {
                loss::make_losses({{}, {}}, {});
              }),
              "cross_entropy stands twice");
}

TEST(Losses, DefaultsAreThoseOfThePaper) {
  const auto losses =
      loss::make_losses(loss::default_distillation_losses(), {.student = 2, .teacher = 4, .survivors = {}});
  EXPECT_EQ(losses.weights, (std::map<std::string, double>{
                                {"cross_entropy", 0.25}, {"kl_divergence", 1}, {"squarehead", 1}}));
  EXPECT_TRUE(losses.needs_teacher_logits());
  EXPECT_DOUBLE_EQ(losses.total({{"cross_entropy", 4}, {"kl_divergence", 2}, {"squarehead", 0.5}}), 3.5);
}

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
      loss::LossSums sums;
      const auto ghidden_ND = loss::head_loop(
          losses, {{student.norm_D.detach(), student.matrix_VD.detach()}, 1e-5, student.hidden_ND.detach()},
          {{teacher.norm_D, teacher.matrix_VD}, 1e-6, teacher.hidden_ND}, targets, kCounted, chunk_rows,
          gradients, sums);
      EXPECT_NEAR(losses.total(sums) / kCounted, expected.item<double>(), 1e-12);
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

}  // namespace
}  // namespace retort
