// SquareHead's value and gradient against its formula.
#include "retort/loss/squarehead.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "support/tolerance.h"

namespace retort {
namespace {

using loss::LossKind;
using test::expect_close;

loss::SquareHead square_head(double eps = 0, double weight = 1) {
  return {loss::LossOptions{.kind = LossKind::squarehead, .weight = weight, .eps = eps}, {0}};
}

// The mean over 11 tokens; writes weight times its gradient to `grad`.
double mean_of(const loss::SquareHead& head, const at::Tensor& student, const at::Tensor& teacher,
               const std::vector<std::int64_t>& bounds, const at::Tensor& grad) {
  return head.add({student, teacher, bounds, 11}, grad).item<double>() / 11;
}

double value_of(const at::Tensor& student, const at::Tensor& teacher,
                const std::vector<std::int64_t>& bounds = {0, 6, 11}) {
  return mean_of(square_head(), student, teacher, bounds, at::empty_like(student));
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
    EXPECT_NEAR(mean_of(head, student.detach(), teacher, {0, 6, 11}, grad), expected.item<double>(), 1e-14);
    expect_close(grad, student.grad(), 1e-13);
  }
}

TEST(SquareHead, ComparesWithTheFeaturesThatWereKept) {
  const auto teacher = at::randn({6, 5}, at::kDouble);
  const std::vector<std::int64_t> kept = {0, 2, 3};
  const loss::SquareHead head({.kind = LossKind::squarehead, .weight = 1, .eps = 0}, {0}, kept);
  auto grad = at::zeros({6, 3}, at::kDouble);
  const auto same = at::stack({teacher.select(1, 0), teacher.select(1, 2), teacher.select(1, 3)}, 1);
  EXPECT_NEAR(head.add({same, teacher, {0, 6}, 6}, grad).item<double>(), 0, 1e-15);
  EXPECT_NEAR(head.add({at::zeros({6, 3}, at::kDouble), teacher, {0, 6}, 6}, grad).item<double>(), 6, 1e-12);
}

TEST(SquareHead, PoolsFeaturesIntoBinsThatMayShareElements) {
  const auto x = at::arange(10, at::kDouble).unsqueeze(0);
  expect_close(loss::pool_features(x, 4), at::tensor({1.0, 3.0, 6.0, 8.0}, at::kDouble).unsqueeze(0), 1e-15);
  expect_close(loss::pool_features(x, 10), x, 0);
}

}  // namespace
}  // namespace retort
