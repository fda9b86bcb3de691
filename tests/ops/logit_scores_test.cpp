// Scores of logits against the formulas in double.
#include "retort/ops/logit_scores.h"

#include <cmath>
#include <limits>

#include "retort/ops/reference/formulas.h"
#include "support/kernel_tables.h"

namespace retort {
namespace {

using test::expect_close;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Rows below and above the piece that is summed in the compute type, far from zero.
std::vector<std::int64_t> vocabularies() {
  auto sizes = test::row_sizes();
  sizes.insert(sizes.end(), {4096, 4097, 12288, 50001});
  return sizes;
}

template <typename C>
at::Tensor row_of(const C& c, std::int64_t vocab) {
  return (at::randn({vocab}, at::kDouble) * 3 - 40).to(c.kType);
}

TEST(RowSum, IsTheLogSumAndTheFirstOfTheLargestOnEveryInstructionSet) {
  test::for_every_kernel([](auto c) {
    for (const auto vocab : vocabularies()) {
      const auto x = row_of(c, vocab);
      x[vocab / 2] = x[vocab - 1] = 25;
      const auto sum = c.kernels.row_sum(c.data(x), vocab);
      EXPECT_EQ(sum.top_index, vocab / 2) << vocab;
      EXPECT_EQ(double(sum.top), 25);
      const double expected = at::logsumexp(x.to(at::kDouble), 0).template item<double>();
      EXPECT_NEAR(sum.log_sum, expected, test::tolerance(c.kStatistics) * 25) << vocab;
    }
  });
}

TEST(RowSum, LeavesOutTheNamedEntriesOnEveryInstructionSet) {
  test::for_every_kernel([](auto c) {
    for (const auto vocab : vocabularies()) {
      const auto x = row_of(c, vocab);
      const auto kept = std::min<std::int64_t>(7, vocab - 1);
      const auto ids = at::randperm(vocab, at::kLong).narrow(0, 0, kept).to(at::kInt);
      x.index_fill_(0, ids.to(at::kLong), 30);  // without them the sum is e^70 times less
      const auto copy = at::empty({vocab}, c.kStatistics), least = at::empty({1}, c.kStatistics);
      const auto sum = c.kernels.row_sum_without(c.data(x), ids.template const_data_ptr<std::int32_t>(), kept,
                                                 vocab, c.statistics(copy), c.statistics(least));
      const auto others = x.to(at::kDouble).index_fill(0, ids.to(at::kLong), -kInfinity);
      EXPECT_NEAR(sum.log_sum, at::logsumexp(others, 0).template item<double>(),
                  test::tolerance(c.kStatistics) * 70)
          << vocab;
      EXPECT_EQ(least.template item<double>(), x.min().template item<double>());
    }
    const auto x = row_of(c, 4), copy = at::empty({4}, c.kStatistics), least = at::empty({1}, c.kStatistics);
    const auto all = at::arange(4, at::kInt);
    EXPECT_EQ(c.kernels
                  .row_sum_without(c.data(x), all.template const_data_ptr<std::int32_t>(), 4, 4,
                                   c.statistics(copy), c.statistics(least))
                  .log_sum,
              -kInfinity);
  });
}

TEST(RowDivergence, IsTheKlOfTeacherAndStudentOnEveryInstructionSet) {
  test::for_every_kernel([](auto c) {
    for (const auto vocab : vocabularies()) {
      const auto s = row_of(c, vocab), t = row_of(c, vocab);
      const double student = at::logsumexp(s.to(at::kDouble), 0).template item<double>();
      const double teacher = at::logsumexp(t.to(at::kDouble), 0).template item<double>();
      const double kl = c.kernels.row_divergence(c.data(s), c.data(t), teacher, student - teacher, vocab);
      const auto expected =
          ops::reference::kl_divergence(s.to(at::kDouble).unsqueeze(0), t.to(at::kDouble).unsqueeze(0),
                                        at::zeros({1}, at::kLong), 1, false, false);
      EXPECT_NEAR(kl, expected.template item<double>(), test::tolerance(c.kStatistics) * 40) << vocab;
    }
  });
}

TEST(ScoreChunk, AgreesWithTheLossesAndCountsOnlyRowsWithTargets) {
  at::manual_seed(3);
  const auto student = at::randn({10, 50}) * 3, teacher = at::randn({10, 50}) * 3;
  auto targets = at::randint(0, 50, {10}, at::kLong);
  targets[4] = -1;
  const auto scores = ops::score_chunk(student, teacher, targets);
  const auto s = student.to(at::kDouble), t = teacher.to(at::kDouble);
  expect_close(scores.nll_N, ops::reference::cross_entropy(s, targets), test::tolerance(at::kFloat));
  expect_close(scores.teacher_nll_N, ops::reference::cross_entropy(t, targets), test::tolerance(at::kFloat));
  expect_close(scores.kl_N, ops::reference::kl_divergence(s, t, targets, 1, false, false),
               test::tolerance(at::kFloat));
  EXPECT_EQ(scores.nll_N[4].item<float>(), 0);
  EXPECT_EQ(scores.kl_N[4].item<float>(), 0);
  test::expect_identical(scores.top1_N, student.argmax(-1));
  expect_close(scores.confidence_N, at::softmax(s, -1).amax(-1), test::tolerance(at::kFloat));
  test::expect_identical(scores.teacher_top1_N, teacher.argmax(-1));
}

TEST(ScoreChunk, ComparesTokensOnlyAndFindsNoOtherRowMostLikely) {
  at::manual_seed(4);
  auto student = at::randn({10, 56}) * 3, teacher = at::randn({10, 64}) * 3;
  student.select(1, 55).fill_(20);  // a padding row that is always the most likely
  auto targets = at::randint(0, 50, {10}, at::kLong);
  targets[4] = -1;
  const auto scores = ops::score_chunk(student, teacher, targets, 50);
  const auto s = student.to(at::kDouble), t = teacher.to(at::kDouble);
  const auto common_s = s.narrow(1, 0, 50), common_t = t.narrow(1, 0, 50);
  expect_close(scores.kl_N, ops::reference::kl_divergence(common_s, common_t, targets, 1, false, false),
               test::tolerance(at::kFloat));
  test::expect_identical(scores.agreed_N, common_s.argmax(-1).eq(common_t.argmax(-1)));
  expect_close(scores.nll_N, ops::reference::cross_entropy(s, targets), test::tolerance(at::kFloat),
               "its own loss is over its own head");
  expect_close(scores.teacher_nll_N, ops::reference::cross_entropy(t, targets), test::tolerance(at::kFloat));
  test::expect_identical(scores.top1_N, common_s.argmax(-1));
  test::expect_identical(scores.teacher_top1_N, common_t.argmax(-1));
  const auto p = at::softmax(s, -1).narrow(1, 0, 50);
  expect_close(scores.confidence_N, p.amax(-1), test::tolerance(at::kFloat), "among all rows of its head");
}

TEST(ScoreChunk, TakesEveryTypeAndRowsOfWiderTensors) {
  at::manual_seed(6);
  for (const auto type : {at::kFloat, at::kDouble, at::kBFloat16}) {
    const auto student = (at::randn({7, 130}, at::kDouble) * 3).to(type);
    const auto teacher = (at::randn({7, 140}, at::kDouble) * 3).to(type).narrow(1, 0, 130);
    const auto targets = at::randint(0, 130, {7}, at::kLong);
    const auto scores = ops::score_chunk(student, teacher, targets);
    const auto s = student.to(at::kDouble), t = teacher.to(at::kDouble);
    const double allowed = test::tolerance(type == at::kDouble ? at::kDouble : at::kFloat);
    expect_close(scores.nll_N, ops::reference::cross_entropy(s, targets), allowed);
    expect_close(scores.kl_N, ops::reference::kl_divergence(s, t, targets, 1, false, false), allowed);
    test::expect_identical(scores.teacher_top1_N, teacher.argmax(-1));
  }
}

TEST(SplitSums, TellsTheKeptTokensFromTheOthers) {
  at::manual_seed(7);
  for (const auto type : {at::kFloat, at::kDouble, at::kBFloat16}) {
    const auto logits = (at::randn({5, 200}, at::kDouble) * 3).to(type);
    const auto ids = at::stack({at::randperm(200), at::randperm(200), at::randperm(200), at::randperm(200),
                                at::randperm(200)})
                         .narrow(1, 0, 20)
                         .to(at::kInt);
    const auto sums = ops::split_sums(logits, ids);
    const auto x = logits.to(at::kDouble);
    const double allowed = test::tolerance(type == at::kDouble ? at::kDouble : at::kFloat);
    expect_close(sums.all_N1, x.logsumexp(-1, true), allowed);
    expect_close(sums.others_N1, x.scatter(1, ids.to(at::kLong), -kInfinity).logsumexp(-1, true), allowed);
    expect_close(sums.kept_NK, x.gather(1, ids.to(at::kLong)), 0);
    expect_close(sums.least_N1, x.amin(-1, true), 0);
  }
}

}  // namespace
}  // namespace retort
