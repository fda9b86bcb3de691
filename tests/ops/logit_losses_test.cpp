// The kernels of losses on logits against the formulas in double and their autograd.
// tests/loss/chunk_test.cpp has what they share with the compositions of the losses.
#include "retort/ops/logit_losses.h"

#include <ATen/Parallel.h>

#include "retort/base/error.h"
#include "retort/ops/reference/formulas.h"
#include "support/kernel_tables.h"

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

using Kind = kernels::LogitTermKind;

kernels::LogitTerm divergence(double temperature, bool reverse, double gradient_scale = 1) {
  return {.kind = reverse ? Kind::reverse_kl : Kind::forward_kl,
          .temperature = temperature,
          .value_scale = temperature * temperature,
          .gradient_scale = gradient_scale * temperature};
}

// What autograd gives for the formulas of the terms.
struct Expected {
  std::vector<double> values;
  at::Tensor gradient;
};

Expected expected_of(const Rows& rows, std::int64_t shared, const std::vector<kernels::LogitTerm>& terms) {
  const auto logits = test::leaf(rows.student);
  const auto teacher = rows.teacher.to(at::kDouble).narrow(1, 0, shared);
  Expected expected;
  at::Tensor sum = at::zeros({}, at::kDouble);
  for (const auto& term : terms) {
    const auto value =
        term.kind == Kind::cross_entropy
            ? ops::reference::cross_entropy(logits, rows.targets).sum()
            : ops::reference::kl_divergence(logits.narrow(1, 0, shared), teacher, rows.targets,
                                            term.temperature, term.kind == Kind::reverse_kl, true)
                  .sum();
    expected.values.push_back(value.item<double>());
    sum = sum + term.gradient_scale / term.temperature * value;
  }
  sum.backward();
  expected.gradient = logits.grad();
  return expected;
}

const kernels::LogitTerm kCrossEntropy{.kind = Kind::cross_entropy, .gradient_scale = 0.7};

// All that a recipe can ask for, in either order, and each kind twice.
std::vector<std::vector<kernels::LogitTerm>> sums_of_losses() {
  std::vector<std::vector<kernels::LogitTerm>> sums = {{kCrossEntropy}};
  for (const bool reverse : {false, true})
    for (const double temperature : {1.0, 3.0}) {
      const auto other = divergence(temperature, reverse, 0.4);
      sums.push_back({other});
      sums.push_back({kCrossEntropy, other});
      sums.push_back({other, kCrossEntropy});
      sums.push_back({kCrossEntropy, other, kCrossEntropy, other});
    }
  return sums;
}

TEST(LogitLosses, AndTheirGradientEqualAutogradOnEveryInstructionSet) {
  test::for_every_kernel([](auto c) {
    using T = typename decltype(c)::Element;
    for (const auto vocab : test::row_sizes())
      for (const auto shared : {vocab, std::max<std::int64_t>(1, vocab - 5)})
        for (const auto& terms : sums_of_losses()) {
          const auto rows = make_rows(c, vocab);
          auto grad = rows.grad.clone();
          const auto work = at::empty({kernels::logit_loss_elements(vocab)}, c.kStatistics);
          std::vector<double> values(terms.size());
          const kernels::LogitRows<T> of{.student_NV = c.data(rows.student),
                                         .student_stride = vocab,
                                         .teacher_NK = c.data(rows.teacher),
                                         .teacher_stride = vocab,
                                         .targets = rows.targets.template const_data_ptr<std::int64_t>(),
                                         .grad_NV = c.data(grad),
                                         .grad_stride = vocab,
                                         .vocab = vocab,
                                         .shared = shared};
          c.kernels.logit_losses(of, 9, terms.data(), static_cast<int>(terms.size()), c.statistics(work),
                                 values.data());
          const auto expected = expected_of(rows, shared, terms);
          for (std::size_t i = 0; i < terms.size(); ++i)
            EXPECT_NEAR(values[i], expected.values[i], 200 * test::tolerance(c.kStatistics));
          if (expected.gradient.abs().max().template item<double>() > 0)
            expect_close(grad, expected.gradient, c.allowed, "gradient");
          else  // the difference of equal numbers
            EXPECT_LE(grad.abs().max().template item<double>(), test::tolerance(c.kStatistics));
        }
  });
}

// The gradient at the target of a row that is sure of it is a small difference of large numbers.
TEST(LogitLosses, GradientOfASureTargetIsExact) {
  const auto logits = at::tensor({9.0, 0.0, 1.0, -2.0}, at::kDouble).unsqueeze(0);
  const auto targets = at::zeros({1}, at::kLong);
  auto grad = at::empty({1, 4}, at::kBFloat16);
  ops::logit_losses(logits.to(at::kBFloat16), {}, targets, {kCrossEntropy}, grad);
  const double wanted = 0.7 * (at::softmax(logits, -1)[0][0].item<double>() - 1);
  EXPECT_NEAR(grad[0][0].item<double>(), wanted, test::kOneBfloat16Rounding * std::abs(wanted));
}

TEST(LogitLosses, GiveTheSameBitsForAnyNumberOfThreads) {
  at::manual_seed(2);
  const auto student = at::randn({77, 333}), teacher = at::randn({77, 333});
  const auto targets = at::randint(0, 333, {77}, at::kLong);
  std::vector<at::Tensor> values, grads;
  for (const int threads : {1, 2, 3}) {
    at::set_num_threads(threads);
    auto grad = at::empty_like(student);
    const auto losses =
        ops::logit_losses(student, teacher, targets, {kCrossEntropy, divergence(3, false)}, grad);
    const auto [error, squares] = ops::square_sums(student, teacher);
    values.push_back(at::stack({losses[0], losses[1], error, squares}));
    grads.push_back(grad);
  }
  at::set_num_threads(2);
  test::expect_identical(values[1], values[0]);
  test::expect_identical(values[2], values[0]);
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

TEST(LogitLosses, RefuseATermThatNoKernelKnows) {
  const auto logits = at::randn({2, 5});
  auto grad = at::empty_like(logits);
  const auto ask = [&](Kind kind, const at::Tensor& teacher) {
    ops::logit_losses(logits, teacher, at::zeros({2}, at::kLong), {{.kind = kind}}, grad);
  };
  EXPECT_THROW(ask(static_cast<Kind>(3), logits), base::InternalError);
  EXPECT_THROW(ask(static_cast<Kind>(3), {}), base::InternalError);
  EXPECT_THROW(ask(Kind::reverse_kl, {}), base::InternalError);
}

}  // namespace
}  // namespace retort
