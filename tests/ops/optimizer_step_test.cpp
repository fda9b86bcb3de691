// AdamW against the formula and against PyTorch's, its copies, and the sum of squares.
#include "retort/ops/optimizer_step.h"

#include <ATen/Parallel.h>
#include <ATen/ops/_fused_adamw.h>
#include <gtest/gtest.h>

#include "retort/base/error.h"
#include "retort/ops/elementwise.h"
#include "retort/ops/reference/formulas.h"
#include "support/kernel_tables.h"
#include "support/message_of.h"

namespace retort {
namespace {

using test::expect_close;

struct State {
  at::Tensor p, g, m, v;
};

State make_state(std::int64_t count) {
  at::manual_seed(6);
  return {at::randn({count}), at::randn({count}), at::zeros({count}), at::zeros({count})};
}

constexpr ops::AdamWSettings kSettings{
    .lr = 3e-3, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .weight_decay = 0.1, .step = 1};

TEST(AdamW, EqualsTheFormulaInDoubleOverManySteps) {
  for (const std::int64_t count : {1, 15, 16, 17, 20000}) {
    auto state = make_state(count);
    auto p = state.p.to(at::kDouble), m = state.m.to(at::kDouble), v = state.v.to(at::kDouble);
    for (std::int64_t step = 1; step <= 20; ++step) {
      const auto g = at::randn({count});
      auto settings = kSettings;
      settings.step = step;
      settings.gradient_scale = 0.5;
      ops::adamw_(state.p, g, state.m, state.v, {}, settings);
      ops::reference::adamw(p, g.to(at::kDouble) * 0.5, m, v, settings.lr, settings.beta1, settings.beta2,
                            settings.eps, settings.weight_decay, step);
    }
    expect_close(state.p, p, test::tolerance(at::kFloat));
    expect_close(state.m, m, test::tolerance(at::kFloat));
    expect_close(state.v, v, test::tolerance(at::kFloat));
  }
}

TEST(AdamW, EqualsTheFusedStepOfPyTorch) {
  auto state = make_state(5000);
  auto p = state.p.clone(), m = state.m.clone(), v = state.v.clone();
  for (std::int64_t step = 1; step <= 5; ++step) {
    auto settings = kSettings;
    settings.step = step;
    ops::adamw_(state.p, state.g, state.m, state.v, {}, settings);
    at::_fused_adamw_({p}, {state.g.clone()}, {m}, {v}, {}, {at::full({}, static_cast<double>(step))},
                      settings.lr, settings.beta1, settings.beta2, settings.weight_decay, settings.eps, false,
                      false);
  }
  expect_close(state.p, p, test::tolerance(at::kFloat));
  expect_close(state.v, v, test::tolerance(at::kFloat));
}

TEST(AdamW, EveryInstructionSetGivesTheSameStep) {
  const kernels::AdamWStep step{.lr = 3e-3,
                                .beta1 = 0.9,
                                .beta2 = 0.95,
                                .eps = 1e-8,
                                .weight_decay = 0.1,
                                .correction1 = 0.1,
                                .correction2 = 0.05,
                                .gradient_scale = 1};
  for (const auto* table = kernels::all_vector_tables(); *table != nullptr; ++table) {
    SCOPED_TRACE((*table)->isa);
    auto state = make_state(1003);
    auto p = state.p.to(at::kDouble), m = state.m.to(at::kDouble), v = state.v.to(at::kDouble);
    auto copy = at::zeros({1003}, at::kBFloat16);
    const auto data = [](const at::Tensor& x) { return x.mutable_data_ptr<float>(); };
    (*table)->adamw(data(state.p), data(state.g), data(state.m), data(state.v),
                    static_cast<kernels::Bf16*>(copy.mutable_data_ptr()), step, 1003);
    ops::reference::adamw(p, state.g.to(at::kDouble), m, v, 3e-3, 0.9, 0.95, 1e-8, 0.1, 1);
    expect_close(state.p, p, test::tolerance(at::kFloat));
    test::expect_identical(copy, state.p.to(at::kBFloat16), "the copy rounds as libtorch does");
    EXPECT_NEAR((*table)->sum_of_squares(data(state.g), 1003),
                state.g.to(at::kDouble).square().sum().item<double>(), 1e-9);
  }
}

TEST(AdamW, RefusesRangesThatItsLoopsWouldMisread) {
  const auto f = at::zeros({64}), d = at::zeros({64}, at::kDouble), other = at::zeros({63});
  const auto says = [](const at::Tensor& p, const at::Tensor& g, const at::Tensor& m, const at::Tensor& v,
                       const at::Tensor& copy) {
    return test::message_of<base::InternalError>([&] { ops::adamw_(p, g, m, v, copy, kSettings); });
  };
  EXPECT_SAYS(says(d, f, f, f, {}),
              "the parameters: expected a dense range of 64 elements of Float, found 64 of Double");
  EXPECT_SAYS(says(f, d, f, f, {}), "the gradient");
  EXPECT_SAYS(says(f, other, f, f, {}), "found 63 of Float");
  EXPECT_SAYS(says(f, f, d, f, {}), "the first moment");
  EXPECT_SAYS(says(f, f, f, at::zeros({64, 2}).select(1, 0), {}), "the second moment");
  EXPECT_SAYS(says(f, f, f, f, f), "the copy");
  EXPECT_SAYS(test::message_of<base::InternalError>([&] { (void)ops::sum_of_squares(d); }), "sum_of_squares");
}

TEST(SumOfSquares, IsExactToDoubleShowsNonFiniteValuesAndDoesNotDependOnThreads) {
  at::manual_seed(8);
  auto x = at::randn({300001});
  std::vector<double> values;
  for (const int threads : {1, 2, 3}) {
    at::set_num_threads(threads);
    values.push_back(ops::sum_of_squares(x).item<double>());
  }
  at::set_num_threads(2);
  EXPECT_EQ(values[0], values[1]);
  EXPECT_EQ(values[0], values[2]);
  const double expected = x.to(at::kDouble).square().sum().item<double>();
  EXPECT_NEAR(values[0], expected, 1e-10 * expected);
  x[299999] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(ops::sum_of_squares(x).item<double>()));
  x[299999] = std::numeric_limits<float>::infinity();
  EXPECT_TRUE(std::isinf(ops::sum_of_squares(x).item<double>()));
  x[299999] = 3e38f;
  EXPECT_TRUE(std::isfinite(ops::sum_of_squares(x).item<double>()));
}

TEST(RmsNormBackward, GivesTheSameBitsForAnyNumberOfThreads) {
  // Here beside the other sums whose pieces are fixed.
  at::manual_seed(9);
  const auto x = at::randn({1000, 40}), w = at::randn({40}), gy = at::randn({1000, 40});
  std::vector<at::Tensor> results;
  for (const int threads : {1, 2, 3}) {
    at::set_num_threads(threads);
    auto gw = at::zeros({40});
    const auto norm = ops::rms_norm(x, w, 1e-5);
    const auto gx = ops::rms_norm_backward(gy, x, w, norm.rstd_N, gy, gw);
    results.push_back(at::cat({gw, gx.flatten(), norm.y_ND.flatten()}));
  }
  at::set_num_threads(2);
  test::expect_identical(results[1], results[0]);
  test::expect_identical(results[2], results[0]);
}

}  // namespace
}  // namespace retort
