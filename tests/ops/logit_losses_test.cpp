// Losses on logits: values and gradients against the formulas in double and their autograd.
#include "retort/ops/logit_losses.h"

#include <ATen/Parallel.h>

#include "ops/kernel_tables.h"
#include "retort/ops/reference/formulas.h"

namespace retort {
namespace {

using test::expect_close;

// Logits of a model that is sure of some tokens, far from zero; every fourth row does not count.
struct Rows {
  at::Tensor student, teacher, targets, grad;
};

template <typename C>
Rows make_rows(const C& c, std::int64_t vocab) {
  constexpr std::int64_t kRows = 9;
  auto targets = at::randint(0, vocab, {kRows}, at::kLong);
  for (std::int64_t row = 3; row < kRows; row += 4) targets[row] = -1;
  const auto offset = at::randn({kRows, 1}, at::kDouble) * 20;
  const auto logits = [&] { return (at::randn({kRows, vocab}, at::kDouble) * 3 + offset).to(c.kType); };
  return {logits(), logits(), targets, c.random({kRows, vocab})};
}

// The kernel adds to what is there, so what it added is compared, at the accuracy of the sum.
void expect_added(const at::Tensor& after, const at::Tensor& before, const at::Tensor& gradient,
                  double allowed) {
  expect_close(after, before.to(at::kDouble) + gradient, allowed, "gradient");
}

TEST(CrossEntropy, ValueAndGradientEqualAutogradOnEveryInstructionSet) {
  test::for_every_kernel([](auto c) {
    for (const auto vocab : test::row_sizes()) {
      const auto rows = make_rows(c, vocab);
      const ops::LossRows spec{.targets = rows.targets.template const_data_ptr<std::int64_t>(),
                               .gradient_scale = 0.7};
      auto grad = rows.grad.clone();
      const auto work = at::empty({vocab}, c.kStatistics);
      const double value =
          c.kernels.cross_entropy(c.data(rows.student), spec, 9, vocab, c.data(grad), c.statistics(work));
      const auto logits = test::leaf(rows.student);
      const auto expected = ops::reference::cross_entropy(logits, rows.targets).sum();
      expected.backward();
      EXPECT_NEAR(value, expected.template item<double>(), 100 * test::tolerance(c.kStatistics));
      expect_added(grad, rows.grad, logits.grad() * 0.7, c.allowed);
    }
  });
}

TEST(KlDivergence, ValueAndGradientEqualAutogradInBothDirectionsOnEveryInstructionSet) {
  test::for_every_kernel([](auto c) {
    for (const auto vocab : test::row_sizes())
      for (const bool reverse : {false, true})
        for (const double temperature : {1.0, 3.0}) {
          const auto rows = make_rows(c, vocab);
          const ops::LossRows spec{.targets = rows.targets.template const_data_ptr<std::int64_t>(),
                                   .gradient_scale = 0.7,
                                   .temperature = temperature,
                                   .reverse = reverse,
                                   .temperature_power_scale = temperature * temperature};
          auto grad = rows.grad.clone();
          const auto work = at::empty({2 * vocab}, c.kStatistics);
          const double value = c.kernels.kl_divergence(c.data(rows.student), c.data(rows.teacher), spec, 9,
                                                       vocab, c.data(grad), c.statistics(work));
          const auto logits = test::leaf(rows.student);
          const auto expected = ops::reference::kl_divergence(logits, rows.teacher.to(at::kDouble),
                                                              rows.targets, temperature, reverse, true)
                                    .sum();
          expected.backward();
          EXPECT_NEAR(value, expected.template item<double>(), 200 * test::tolerance(c.kStatistics));
          expect_added(grad, rows.grad, logits.grad() * 0.7, c.allowed);
        }
  });
}

// T = 3, z_student = [1, 2, 0.5, -1], z_teacher = [2, 1, 0, -2]: with p = softmax(z / 3),
// 9 * sum p_t (log p_t - log p_s), and 9 * sum p_s (log p_s - log p_t) for the reverse; computed in double
// with NumPy.
TEST(KlDivergence, GivesTheNumbersComputedByHand) {
  const auto student = at::tensor({1.0, 2.0, 0.5, -1.0}, at::kDouble).unsqueeze(0);
  const auto teacher = at::tensor({2.0, 1.0, 0.0, -2.0}, at::kDouble).unsqueeze(0);
  const auto targets = at::zeros({1}, at::kLong);
  auto grad = at::zeros_like(student);
  EXPECT_NEAR(ops::kl_divergence_(student, teacher, targets, {.temperature = 3}, 1, grad),
              0.40072925093333167, 1e-14);
  expect_close(grad, 3 * (at::softmax(student / 3, -1) - at::softmax(teacher / 3, -1)), 1e-13);
  EXPECT_NEAR(ops::kl_divergence_(student, teacher, targets, {.temperature = 3, .reverse = true}, 1, grad),
              0.37858291252855186, 1e-14);
  EXPECT_NEAR(ops::kl_divergence_(student, teacher, targets, {.temperature = 3, .temperature_squared = false},
                                  1, grad),
              0.40072925093333167 / 9, 1e-14);
}

TEST(KlDivergence, IsZeroWithoutGradientForEqualLogits) {
  for (const auto type : {at::kFloat, at::kDouble, at::kBFloat16})
    for (const bool reverse : {false, true}) {
      const auto logits = (at::randn({4, 100}, at::kDouble) * 5).to(type);
      auto grad = at::zeros_like(logits);
      const double value = ops::kl_divergence_(logits, logits.clone(), at::zeros({4}, at::kLong),
                                               {.temperature = 2, .reverse = reverse}, 1, grad);
      EXPECT_EQ(value, 0);
      EXPECT_EQ(grad.abs().max().item<double>(), 0);
    }
}

TEST(LogitLosses, GiveTheSameBitsForAnyNumberOfThreads) {
  at::manual_seed(2);
  const auto student = at::randn({77, 333}), teacher = at::randn({77, 333});
  const auto targets = at::randint(0, 333, {77}, at::kLong);
  std::vector<double> values;
  std::vector<at::Tensor> grads;
  for (const int threads : {1, 2, 3}) {
    at::set_num_threads(threads);
    auto grad = at::zeros_like(student);
    values.push_back(ops::cross_entropy_(student, targets, 0.1, grad));
    values.push_back(ops::kl_divergence_(student, teacher, targets, {.temperature = 3}, 0.1, grad));
    values.push_back(ops::square_sums(student, teacher).error);
    values.push_back(ops::square_sums(student, teacher).teacher);
    grads.push_back(grad);
  }
  at::set_num_threads(2);
  for (std::size_t i = 4; i < values.size(); ++i) EXPECT_EQ(values[i], values[i % 4]) << i;
  test::expect_identical(grads[1], grads[0]);
  test::expect_identical(grads[2], grads[0]);
}

TEST(SquareSums, AndScaledDifferenceEqualTheFormulasOnEveryInstructionSet) {
  test::for_every_kernel([](auto c) {
    for (const std::int64_t count : {1, 15, 16, 17, 133, 4096, 9001}) {
      const auto s = c.random({count}), t = c.random({count});
      double error = 0, teacher = 0;
      c.kernels.square_sums(c.data(s), c.data(t), count, &error, &teacher);
      const auto sd = s.to(at::kDouble), td = t.to(at::kDouble);
      const double wanted = (sd - td).square().sum().template item<double>();
      EXPECT_NEAR(error, wanted, test::tolerance(c.kStatistics) * wanted);
      EXPECT_NEAR(teacher, td.square().sum().template item<double>(),
                  test::tolerance(c.kStatistics) * td.square().sum().template item<double>());
      auto out = at::empty_like(s);
      c.kernels.scaled_difference(c.data(s), c.data(t), -0.3, count, c.data(out));
      expect_close(out, -0.3 * (sd - td), c.allowed);
    }
  });
}

TEST(LogitLosses, KlTakesTheFirstColumnsOfWiderTensors) {
  at::manual_seed(5);
  for (const auto type : {at::kFloat, at::kBFloat16, at::kDouble})
    for (const bool reverse : {false, true}) {
      const auto student = at::randn({19, 40}).to(type), teacher = at::randn({19, 37}).to(type);
      const auto targets = at::randint(-1, 33, {19}, at::kLong);
      const ops::KlSpec spec{.temperature = 3, .reverse = reverse};
      auto wide = at::ones({19, 40}, student.options()), narrow = at::ones({19, 33}, student.options());
      const auto first = [](const at::Tensor& x) { return x.narrow(1, 0, 33); };
      const double value =
          ops::kl_divergence_(first(student), first(teacher), targets, spec, 0.3, first(wide));
      EXPECT_EQ(value, ops::kl_divergence_(first(student).contiguous(), first(teacher).contiguous(), targets,
                                           spec, 0.3, narrow));
      test::expect_identical(first(wide), narrow);
      test::expect_identical(wide.narrow(1, 33, 7), at::ones({19, 7}, student.options()));
    }
}

}  // namespace
}  // namespace retort
