// Operations of one path against the formulas in double and their autograd; and what they hold against what a
// memory plan is told.  Three programs are linked with this: for the loops of CPUs, for the compositions of
// kernels/device/ and for the kernels of kernels/cuda/.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "ops/score_rules.h"
#include "retort/kernels/device/pieces.h"
#include "retort/ops/attention.h"
#include "retort/ops/elementwise.h"
#include "retort/ops/logit_losses.h"
#include "retort/ops/logit_scores.h"
#include "retort/ops/matrix_product.h"
#include "retort/ops/optimizer_step.h"
#include "retort/ops/path.h"
#include "retort/ops/reference/formulas.h"
#include "retort/ops/tensor_allocator.h"
#include "retort/ops/work_memory.h"
#include "support/tolerance.h"

namespace retort {
namespace {

namespace reference = ops::reference;
using test::expect_close;

class Counted final : public ::testing::Environment {
 public:
  void SetUp() override { ops::install_tensor_allocator(); }
};
[[maybe_unused]] const auto* const kCounted = ::testing::AddGlobalTestEnvironment(new Counted);

constexpr double kEps = 1e-5;

// Where the operands lie: RETORT_TEST_ON=cuda puts them on an accelerator, with a program that was built for
// one.
at::Device place() {
  static const char* named = std::getenv("RETORT_TEST_ON");
  return {named && *named ? named : "cpu"};
}
at::Tensor placed(const at::Tensor& x) {
  return x.to(place());
}

at::Tensor leaf(const at::Tensor& x) {
  return x.to(at::kDouble).clone().set_requires_grad(true);
}

class DeviceTest : public testing::TestWithParam<at::ScalarType> {
 protected:
  void SetUp() override { at::manual_seed(5); }
  at::ScalarType statistics() const { return GetParam() == at::kDouble ? at::kDouble : at::kFloat; }
  double allowed() const { return test::tolerance(GetParam()); }
  double allowed_of_sums() const { return 10 * test::tolerance(statistics()); }
  // Rows and columns: such as a thread of a kernel takes one by one and several at a time; and (once, for it
  // takes its time) of two pieces of a composition.
  std::vector<std::pair<std::int64_t, std::int64_t>> sizes() const {
    std::vector<std::pair<std::int64_t, std::int64_t>> all = {{9, 2}, {9, 133}, {3, 2056}, {2, 6152}};
    // Where there is but one column, loops leave some of the last digits of nothing.
    if (ops::path_of(place()) != ops::Path::cpu) all.emplace_back(9, 1);
    if (GetParam() == at::kFloat && ops::path_of(place()) == ops::Path::device)
      all.emplace_back(2, kernels::device::kPieceElements / 2 + 1);
    return all;
  }
  at::Tensor random(at::IntArrayRef shape, double scale = 1) const {
    return placed((at::randn(shape, at::kDouble) * scale).to(GetParam()));
  }
  // Logits of a model that is sure of some tokens, far from zero.
  at::Tensor logits(std::int64_t rows, std::int64_t vocab, const at::Tensor& offset) const {
    return placed((at::randn({rows, vocab}, at::kDouble) * 3 + offset).to(GetParam()));
  }
};

INSTANTIATE_TEST_SUITE_P(Types, DeviceTest, testing::Values(at::kFloat, at::kDouble, at::kBFloat16),
                         [](const auto& tested) { return std::string(at::toString(tested.param)); });

TEST_P(DeviceTest, RmsNormEqualsTheFormulaAndItsBackwardAutograd) {
  for (const auto& [rows, dim] : sizes()) {
    const auto x = random({rows, dim}), w = random({dim}), gy = random({rows, dim}),
               residual = random({rows, dim});
    const auto norm = ops::rms_norm(x, w, kEps);
    auto gw = placed(at::ones({dim}, statistics()));
    const auto gx = ops::rms_norm_backward(gy, x, w, norm.rstd_N, residual, gw);
    const auto lx = leaf(x), lw = leaf(w);
    const auto y = reference::rms_norm(lx, lw, kEps);
    y.backward(gy.to(at::kDouble));
    expect_close(norm.y_ND, y, allowed(), "y");
    expect_close(norm.rstd_N, (x.to(at::kDouble).square().mean(-1) + kEps).rsqrt(),
                 test::tolerance(statistics()));
    expect_close(gx, lx.grad() + residual.to(at::kDouble), allowed(), "gx");
    auto again = placed(at::ones({dim}, statistics()));
    const auto alone = ops::rms_norm_backward(gy, x, w, norm.rstd_N, {}, again);
    expect_close(alone.to(at::kDouble) + residual.to(at::kDouble), lx.grad() + residual.to(at::kDouble),
                 allowed(), "without residual");
    expect_close(gw, lw.grad() + 1, allowed_of_sums(), "gw");
  }
}

TEST_P(DeviceTest, RotaryEqualsTheFormulaLeavesOtherHeadsAloneAndIsUndoneByItsInverse) {
  constexpr std::int64_t kRows = 6, kHeads = 3, kHeadDim = 10, kStride = 45;
  const auto tables =
      ops::rotary_tables(placed(at::arange(kRows) * 11), placed(ops::rotary_frequencies(kHeadDim, 10000.0)));
  const auto before = random({kRows, kStride});
  const auto turned = before.clone();
  ops::apply_rotary(turned, kHeads, kHeadDim, tables, 1);
  const auto part = [&](const at::Tensor& x) {
    return x.narrow(1, 0, kHeads * kHeadDim).reshape({kRows, kHeads, kHeadDim});
  };
  expect_close(part(turned),
               reference::rotary(part(before).to(at::kDouble), tables.cos_NE2, tables.sin_NE2, 1), allowed());
  const auto others = [&](const at::Tensor& x) {
    return x.narrow(1, kHeads * kHeadDim, kStride - kHeads * kHeadDim);
  };
  test::expect_identical(others(turned), others(before));
  ops::apply_rotary(turned, kHeads, kHeadDim, tables, -1);
  expect_close(turned, before, std::max(allowed(), test::kThroughFloatTables));
}

TEST_P(DeviceTest, SwigluEqualsTheFormulaAndItsBackwardInPlaceAutograd) {
  for (const auto& [rows, width] : sizes()) {
    auto gate_up = random({rows, 2 * width}, 3);
    const auto gout = random({rows, width});
    const auto x = leaf(gate_up);
    const auto y = reference::swiglu(x);
    y.backward(gout.to(at::kDouble));
    expect_close(ops::swiglu(gate_up), y, allowed(), "forward");
    const auto result = ops::swiglu_backward_(gout, gate_up);
    expect_close(result.out_NI, y, allowed(), "output again");
    expect_close(gate_up, x.grad(), allowed(), "gradient");
    EXPECT_TRUE(result.gate_up_N2I.is_same(gate_up));
  }
}

TEST_P(DeviceTest, GegluEqualsTheFormulaAndItsBackwardInPlaceAutograd) {
  for (const auto& [rows, width] : sizes()) {
    auto gate_up = random({rows, 2 * width}, 3);
    const auto gout = random({rows, width});
    const auto x = leaf(gate_up);
    const auto y = reference::geglu(x);
    y.backward(gout.to(at::kDouble));
    expect_close(ops::geglu(gate_up), y, allowed(), "forward");
    const auto result = ops::geglu_backward_(gout, gate_up);
    expect_close(result.out_NI, y, allowed(), "output again");
    expect_close(gate_up, x.grad(), allowed(), "gradient");
  }
}

TEST_P(DeviceTest, AccumulateAddsInTheTypeOfTheSum) {
  const auto x = random({3, 700}), sum = placed(at::randn({3, 700}, statistics()));
  const auto expected = sum + x.to(statistics());
  ops::accumulate(x, sum);
  test::expect_identical(sum, expected);
}

// In bfloat16 nothing is rounded between the product and the sum, but for compositions, which round it once.
TEST_P(DeviceTest, GradientsOfWeightsAreAddedInTheTypeOfTheSum) {
  const auto a = random({70, 24}), b = random({70, 40});
  const auto before = placed(at::randn({24, 40}, statistics())), sum = before.clone();
  ops::add_transposed_product(sum, a, b);
  expect_close(sum, before.to(at::kDouble) + a.to(at::kDouble).t().mm(b.to(at::kDouble)), allowed());
}

struct Packed {
  std::int64_t heads, kv_heads, head_dim;
  std::vector<std::int64_t> starts;

  at::Tensor part(const at::Tensor& x, std::int64_t begin, std::int64_t count) const {
    return x.narrow(1, begin * head_dim, count * head_dim).view({x.size(0), count, head_dim});
  }
  at::Tensor q(const at::Tensor& x) const { return part(x, 0, heads); }
  at::Tensor k(const at::Tensor& x) const { return part(x, heads, kv_heads); }
  at::Tensor v(const at::Tensor& x) const { return part(x, heads + kv_heads, kv_heads); }
};

const Packed kPacked[] = {{1, 1, 2, {0, 1}},          {4, 4, 8, {0, 1, 2, 40, 47}}, {6, 2, 10, {0, 130, 250}},
                          {4, 2, 8, {0, 1, 2, 3, 4}}, {8, 2, 64, {0, 90, 200}},     {8, 1, 64, {0, 33, 34}}};

TEST_P(DeviceTest, AttentionEqualsTheFormulaAndItsBackwardAutogradInEverySegment) {
  std::vector<std::pair<Packed, ops::ScoreRule>> cases;
  for (const auto& in : kPacked)
    for (const auto& rule : test::rules()) cases.emplace_back(in, rule.of_heads(in.head_dim));
  for (const auto& [in, rule] : cases) {
    SCOPED_TRACE(testing::Message() << in.heads << " heads of " << in.head_dim << ", window " << rule.window
                                    << ", soft cap " << rule.softcap);
    const auto tokens = in.starts.back();
    const auto fused = random({tokens, (in.heads + 2 * in.kv_heads) * in.head_dim});
    const auto gout = random({tokens, in.heads, in.head_dim});
    const auto x = leaf(fused);
    const auto out = reference::attention(in.q(x), in.k(x), in.v(x), in.starts, rule);
    out.backward(gout.to(at::kDouble));
    const auto forward = ops::attention(in.q(fused), in.k(fused), in.v(fused), in.starts, rule);
    expect_close(forward.out_NHE, out, allowed(), "out");
    const auto grad = at::full_like(fused, 77);
    ops::attention_backward(gout, in.q(fused), in.k(fused), in.v(fused), forward, in.starts, in.q(grad),
                            in.k(grad), in.v(grad), rule);
    expect_close(grad, x.grad(), allowed(), "gradient");
    EXPECT_FALSE(grad.requires_grad());
  }
}

TEST_P(DeviceTest, SquareSumsAndScaledDifferenceEqualTheFormulas) {
  const auto s = random({70, 33}), t = random({70, 33}), out = at::empty_like(s);
  const auto sd = s.to(at::kDouble), td = t.to(at::kDouble);
  const auto sums = ops::square_sums(s, t);
  const double error = (sd - td).square().sum().item<double>(), teacher = td.square().sum().item<double>();
  EXPECT_NEAR(sums.error.item<double>(), error, test::tolerance(statistics()) * error);
  EXPECT_NEAR(sums.teacher.item<double>(), teacher, test::tolerance(statistics()) * teacher);
  ops::scaled_difference(s, t, placed(at::scalar_tensor(-0.3, at::kDouble)), out);
  expect_close(out, -0.3 * (sd - td), allowed());
}

TEST_P(DeviceTest, RelativeErrorsAndTheirGradientEqualAutogradInEverySegment) {
  for (const std::int64_t dim : {33, 2048}) {
    const auto s = random({70, dim}), t = random({70, dim}), grad = at::full_like(s, 77);
    const std::vector<std::int64_t> bounds = {0, 1, 40, 70};
    const auto value = ops::relative_errors(
        s, t, bounds, {.eps = 0.1, .blocks = 3, .step_tokens = 140, .weight = 0.7}, grad);
    const auto x = leaf(s);
    auto expected = at::zeros({}, x.options());
    for (std::size_t i = 0; i + 1 < bounds.size(); ++i) {
      const auto part = [&](const at::Tensor& all) {
        return all.narrow(0, bounds[i], bounds[i + 1] - bounds[i]).to(at::kDouble);
      };
      const auto relative = (part(x) - part(t)).square().mean() / (part(t).square().mean() + 0.1);
      expected = expected + relative * static_cast<double>(bounds[i + 1] - bounds[i]) / 3;
    }
    (expected * (0.7 / 140)).backward();
    EXPECT_NEAR(value.item<double>(), expected.item<double>(),
                test::tolerance(statistics()) * expected.item<double>());
    expect_close(grad, x.grad(), allowed());
  }
}

TEST(DeviceTestOfAdamW, EqualsTheFormulaInDoubleOverManyStepsWithACopy) {
  at::manual_seed(6);
  auto p = placed(at::randn({1003})), m = at::zeros_like(p), v = at::zeros_like(p);
  auto exact_p = p.to(at::kDouble), exact_m = m.to(at::kDouble), exact_v = v.to(at::kDouble);
  const auto copy = at::zeros_like(p, at::kBFloat16);
  for (std::int64_t step = 1; step <= 20; ++step) {
    const auto g = placed(at::randn({1003}));
    ops::adamw_(p, g, m, v, copy,
                {.lr = 3e-3,
                 .beta1 = 0.9,
                 .beta2 = 0.95,
                 .eps = 1e-8,
                 .weight_decay = 0.1,
                 .step = step,
                 .gradient_scale = 0.5});
    reference::adamw(exact_p, g.to(at::kDouble) * 0.5, exact_m, exact_v, 3e-3, 0.9, 0.95, 1e-8, 0.1, step);
  }
  expect_close(p, exact_p, test::tolerance(at::kFloat));
  expect_close(m, exact_m, test::tolerance(at::kFloat));
  expect_close(v, exact_v, test::tolerance(at::kFloat));
  test::expect_identical(copy, p.to(at::kBFloat16));
}

TEST(DeviceTestOfSumOfSquares, IsExactToDoubleAndShowsNonFiniteValues) {
  at::manual_seed(8);
  auto x = placed(at::randn({kernels::device::kPieceElements + 77}));
  const double expected = x.to(at::kDouble).square().sum().item<double>();
  EXPECT_NEAR(ops::sum_of_squares(x).item<double>(), expected, 1e-10 * expected);
  x[kernels::device::kPieceElements + 5] = 3e38f;
  EXPECT_TRUE(std::isfinite(ops::sum_of_squares(x).item<double>()));
  x[7] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(ops::sum_of_squares(x).item<double>()));
}

// Bytes that `body` holds at its peak beside what was there and what it returns.
template <typename Body>
std::int64_t work_of(Body body) {
  const auto before = ops::live_tensor_bytes();
  ops::reset_peak_tensor_bytes();
  [[maybe_unused]] const auto result = body();
  return ops::peak_tensor_bytes() - before - (ops::live_tensor_bytes() - before);
}

// What is held is at most what is told; and what is told is not far more than what is held.
void expect_work(const char* what, std::int64_t held, std::int64_t told) {
  constexpr std::int64_t kSmallTensors = 1 << 18;  // of one number a row or a column
  EXPECT_LE(held, told + kSmallTensors) << what;
  EXPECT_GE(held, told / 2 - kSmallTensors) << what;
}

TEST(WorkMemory, IsWhatTheCompositionsHold) {
  const auto kPath = ops::path_of(place());
  for (const auto type : {at::kFloat, at::kBFloat16})
    // Of one piece, and of several; a kernel has no pieces.
    for (const std::int64_t rows : kPath == ops::Path::cuda ? std::vector{64} : std::vector{1000, 9000}) {
      SCOPED_TRACE(testing::Message() << at::toString(type) << ", " << rows << " rows");
      constexpr std::int64_t kDim = 1024;
      const auto item = static_cast<std::int64_t>(at::elementSize(type));
      const auto x = at::ones({rows, kDim}, type), y = at::ones({rows, kDim}, type),
                 z = at::ones({rows, kDim}, type);
      const auto w = at::ones({kDim}, type);
      const auto rstd = ops::rms_norm(x, w, kEps).rstd_N;
      auto gw = at::zeros({kDim});
      const auto targets = at::zeros({rows}, at::kLong);
      const auto norm = ops::rms_norm_work_bytes(kPath, rows, kDim, item);
      EXPECT_LE(work_of([&] { return ops::rms_norm(x, w, kEps); }), norm + (1 << 18));
      expect_work("rms_norm_backward", work_of([&] { return ops::rms_norm_backward(y, x, w, rstd, z, gw); }),
                  norm);
      const auto table = at::ones({rows, 32});
      expect_work("rotary", work_of([&] {
                    ops::apply_rotary(x, 16, 64, {table, table}, 1);
                    return 0;
                  }),
                  ops::rotary_work_bytes(kPath, rows, kDim, item));
      const auto half = y.narrow(0, 0, rows / 2).view({rows, kDim / 2});
      expect_work("swiglu_backward",
                  work_of([&] { return ops::swiglu_backward_(half, x.clone()).out_NI; }) - item * rows * kDim,
                  ops::swiglu_backward_work_bytes(kPath, rows, kDim / 2, item));
      for (const std::int64_t tokens : {kDim, kDim - 24})
        expect_work("score_chunk", work_of([&] { return ops::score_chunk(x, y, targets, tokens); }),
                    ops::score_work_bytes(kPath, rows, kDim, item, true));
      const auto sum = at::zeros({rows, kDim});
      expect_work("accumulate", work_of([&] {
                    ops::accumulate(x, sum);
                    return 0;
                  }),
                  ops::accumulate_work_bytes(kPath, rows, kDim, item));
    }
}

TEST(WorkMemory, OfAttentionHasNoMatrixOfLengthTimesLength) {
  constexpr std::int64_t kLength = 2048, kHeads = 8, kKvHeads = 2, kHeadDim = 16;
  const auto kRule = ops::ScoreRule{}.of_heads(kHeadDim);
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    const auto item = static_cast<std::int64_t>(at::elementSize(type));
    const auto q = at::randn({kLength, kHeads, kHeadDim}).to(type),
               k = at::randn({kLength, kKvHeads, kHeadDim}).to(type),
               v = at::randn({kLength, kKvHeads, kHeadDim}).to(type), gout = at::randn_like(q);
    const auto gq = at::empty_like(q), gk = at::empty_like(k), gv = at::empty_like(v);
    const ops::AttentionSizes sizes{
        .segment = kLength, .heads = kHeads, .queries = kHeads * kHeadDim, .keys = kKvHeads * kHeadDim};
    // The library's kernels have buffers of blocks for each thread, whatever the length.
    constexpr std::int64_t kBlocks = std::int64_t{4} << 20;
    ops::Attention kept;
    const auto forward = work_of([&] { return kept = ops::attention(q, k, v, {0, kLength}, kRule); });
    EXPECT_LE(forward, ops::attention_work_bytes(ops::path_of(place()), sizes, item) + kBlocks);
    const auto backward = work_of([&] {
      ops::attention_backward(gout, q, k, v, kept, {0, kLength}, gq, gk, gv, kRule);
      return 0;
    });
    EXPECT_LE(backward, ops::attention_backward_work_bytes(ops::path_of(place()), sizes, item) + kBlocks);
    EXPECT_LT(backward, kLength * kLength * kHeads * item / 8);
  }
}

}  // namespace
}  // namespace retort
