#include "retort/ops/top_k_teacher.h"

#include <gtest/gtest.h>

#include "retort/ops/reference/formulas.h"
#include "support/tolerance.h"

namespace retort {
namespace {

using test::expect_close;

struct Case {
  at::Tensor student = at::randn({12, 300}) * 3, teacher = at::randn({12, 300}) * 3;
  at::Tensor targets = at::randint(0, 300, {12}, at::kLong);
  Case() { targets[4] = -1; }
  at::Tensor full_kl() const {
    return ops::reference::kl_divergence(student.to(at::kDouble), teacher.to(at::kDouble), targets, 1, false,
                                         false);
  }
  ops::TopKScores scores(std::int64_t k) const {
    return ops::score_top_k(student, ops::top_k_teacher(teacher, k), targets);
  }
};

TEST(TopKTeacher, OfTheWholeVocabularyIsTheFullKl) {
  at::manual_seed(4);
  const Case c;
  for (const std::int64_t k : {300, 1000}) {
    const auto scores = c.scores(k);
    expect_close(scores.kl_N, c.full_kl(), test::tolerance(at::kFloat));
    expect_close(scores.nll_N, ops::reference::cross_entropy(c.student.to(at::kDouble), c.targets),
                 test::tolerance(at::kFloat));
    EXPECT_EQ(scores.kl_N[4].item<float>(), 0);
    EXPECT_EQ(scores.nll_N[4].item<float>(), 0);
    EXPECT_TRUE(scores.kl_gap_N.eq(0).all().item<bool>());
  }
}

// By hand: what is not among the k most likely tokens of the teacher is one outcome.
TEST(TopKTeacher, PutsAllOtherTokensTogether) {
  at::manual_seed(5);
  const Case c;
  const auto p_NV = at::softmax(c.teacher.to(at::kDouble), -1),
             q_NV = at::softmax(c.student.to(at::kDouble), -1);
  for (const std::int64_t k : {1, 7, 100}) {
    const auto scores = c.scores(k);
    for (std::int64_t row = 0; row < 12; ++row) {
      if (row == 4) continue;
      const auto order = std::get<1>(p_NV[row].sort(-1, /*descending=*/true)).narrow(0, 0, k);
      const auto p = p_NV[row].index_select(0, order), q = q_NV[row].index_select(0, order);
      const double p_tail = 1 - p.sum().item<double>(), q_tail = 1 - q.sum().item<double>();
      const double expected = (p * (p / q).log()).sum().item<double>() + p_tail * std::log(p_tail / q_tail);
      EXPECT_NEAR(scores.kl_N[row].item<double>(), expected, test::tolerance(at::kFloat) * (1 + expected));
    }
  }
}

TEST(TopKTeacher, IsALowerBoundThatGrowsTightWithK) {
  at::manual_seed(6);
  const Case c;
  const auto full = c.full_kl();
  auto before = at::zeros_like(full);
  for (const std::int64_t k : {1, 4, 16, 64, 256, 299}) {
    const auto kl = c.scores(k).kl_N.to(at::kDouble);
    EXPECT_TRUE((kl - full).le(1e-5).all().item<bool>()) << k;
    const auto most = kl + c.scores(k).kl_gap_N;
    EXPECT_TRUE((full - most).le(1e-5).all().item<bool>()) << k << ": what is missing is within the gap";
    EXPECT_TRUE((before - kl).le(1e-5).all().item<bool>()) << k << ": splitting an outcome never lowers KL";
    before = kl;
  }
  expect_close(before, full, 1e-4);
}

// A teacher that is sure, beside a student that is not, and the other way round.
TEST(TopKTeacher, StaysFiniteWithoutATail) {
  auto sure = at::zeros({2, 50});
  sure.select(1, 3).fill_(200);
  const auto flat = at::zeros({2, 50}), targets = at::zeros({2}, at::kLong);
  const auto one = ops::score_top_k(flat, ops::top_k_teacher(sure, 5), targets);
  EXPECT_NEAR(one.kl_N[0].item<double>(), std::log(50), 1e-5);
  const auto other = ops::score_top_k(sure, ops::top_k_teacher(flat, 5), targets);
  EXPECT_TRUE(other.kl_N.isfinite().all().item<bool>());
  EXPECT_GT(other.kl_N[0].item<double>(), 10);
}

// A student far surer than its teacher: its tail is below what float32 can tell from 0.
TEST(TopKTeacher, StaysALowerBoundForASharpStudent) {
  at::manual_seed(7);
  const auto teacher = at::randn({50, 300}) * 4;
  for (const double sharper : {1.5, 2.0, 3.0, 5.0}) {
    const auto student = teacher * sharper + 20, targets = at::zeros({50}, at::kLong);
    const auto full = ops::reference::kl_divergence(student.to(at::kDouble), teacher.to(at::kDouble), targets,
                                                    1, false, false);
    for (const std::int64_t k : {8, 64, 256}) {
      const auto kl = ops::score_top_k(student, ops::top_k_teacher(teacher, k), targets).kl_N;
      EXPECT_TRUE((kl.to(at::kDouble) - full).le(2e-5 * full.max()).all().item<bool>())
          << sharper << ", " << k;
    }
  }
}

}  // namespace
}  // namespace retort
