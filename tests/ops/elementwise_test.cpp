// RMSNorm, rotary embedding and SwiGLU against the plain formulas in double and their autograd.
#include "retort/ops/elementwise.h"

#include "retort/ops/reference/formulas.h"
#include "support/kernel_tables.h"

namespace retort {
namespace {

using test::expect_close;

constexpr double kEps = 1e-5;

TEST(RmsNorm, ForwardEqualsTheFormulaOnEveryInstructionSet) {
  test::for_every_kernel([](auto c) {
    for (const auto dim : test::row_sizes()) {
      const auto x = c.random({5, dim}), w = c.random({dim});
      auto y = at::empty_like(x), rstd = at::empty({5}, c.kStatistics);
      c.kernels.rms_norm_forward(c.data(x), c.data(w), kEps, 5, dim, c.data(y), c.statistics(rstd));
      expect_close(y, ops::reference::rms_norm(x.to(at::kDouble), w.to(at::kDouble), kEps), c.allowed);
      expect_close(rstd, (x.to(at::kDouble).square().mean(-1) + kEps).rsqrt(),
                   test::tolerance(c.kStatistics));
    }
  });
}

TEST(RmsNorm, BackwardEqualsAutogradAndAddsResidualAndWeightGradient) {
  test::for_every_kernel([](auto c) {
    for (const auto dim : test::row_sizes()) {
      const auto x = c.random({5, dim}), w = c.random({dim}), gy = c.random({5, dim}),
                 residual = c.random({5, dim});
      auto y = at::empty_like(x), gx = at::empty_like(x), rstd = at::empty({5}, c.kStatistics);
      auto gw = at::ones({dim}, c.kStatistics);
      c.kernels.rms_norm_forward(c.data(x), c.data(w), kEps, 5, dim, c.data(y), c.statistics(rstd));
      c.kernels.rms_norm_backward(c.data(gy), c.data(x), c.data(w), c.statistics(rstd), c.data(residual), 5,
                                  dim, c.data(gx), c.statistics(gw));
      const auto lx = test::leaf(x), lw = test::leaf(w);
      ops::reference::rms_norm(lx, lw, kEps).backward(gy.to(at::kDouble));
      expect_close(gx, lx.grad() + residual.to(at::kDouble), c.allowed, "gx");
      expect_close(gw, lw.grad() + 1, 10 * test::tolerance(c.kStatistics), "gw");
    }
  });
}

TEST(Rotary, EqualsTheFormulaLeavesOtherHeadsAloneAndIsUndoneByItsInverse) {
  test::for_every_kernel([](auto c) {
    for (const std::int64_t half : {1, 4, 8, 9, 16, 37}) {
      const std::int64_t rows = 6, heads = 3, head_dim = 2 * half, stride = 4 * head_dim + 5;
      const auto tables =
          ops::rotary_tables(at::arange(rows) * 11, ops::rotary_frequencies(head_dim, 10000.0));
      const auto wide = c.random({rows, stride});
      auto turned = wide.clone();
      const auto *cosine = tables.cos_NE2.template const_data_ptr<float>(),
                 *sine = tables.sin_NE2.template const_data_ptr<float>();
      c.kernels.rope(c.data(turned), cosine, sine, rows, stride, heads, head_dim, head_dim / 2, 1);
      const auto x = wide.narrow(1, 0, heads * head_dim).to(at::kDouble).reshape({rows, heads, head_dim});
      const auto expected = ops::reference::rotary(x, tables.cos_NE2, tables.sin_NE2, 1);
      expect_close(turned.narrow(1, 0, heads * head_dim).reshape({rows, heads, head_dim}), expected,
                   c.allowed);
      test::expect_identical(turned.narrow(1, heads * head_dim, stride - heads * head_dim),
                             wide.narrow(1, heads * head_dim, stride - heads * head_dim));
      c.kernels.rope(c.data(turned), cosine, sine, rows, stride, heads, head_dim, head_dim / 2, -1);
      expect_close(turned, wide, std::max(c.allowed, test::kThroughFloatTables));
    }
  });
}

TEST(Rotary, TablesHoldTheAnglesOfTheModelThatHuggingFaceRotates) {
  const auto tables = ops::rotary_tables(at::arange(300), ops::rotary_frequencies(6, 500000.0));
  for (const std::int64_t position : {0, 1, 299})
    for (const std::int64_t i : {0, 1, 2}) {
      const double angle =
          static_cast<double>(position) * std::pow(500000.0, -static_cast<double>(2 * i) / 6);
      EXPECT_NEAR(tables.cos_NE2[position][i].item<double>(), std::cos(angle), 3e-5);
      EXPECT_NEAR(tables.sin_NE2[position][i].item<double>(), std::sin(angle), 3e-5);
    }
}

TEST(Swiglu, ForwardEqualsTheFormulaOnEveryInstructionSet) {
  test::for_every_kernel([](auto c) {
    for (const auto width : test::row_sizes()) {
      const auto gate_up = at::mul(c.random({5, 2 * width}), 3).contiguous();
      auto out = at::empty({5, width}, c.kType);
      c.kernels.swiglu_forward(c.data(gate_up), 5, width, c.data(out));
      expect_close(out, ops::reference::swiglu(gate_up.to(at::kDouble)), c.allowed);
    }
  });
}

TEST(Swiglu, BackwardInPlaceEqualsAutogradAndGivesTheOutputAgain) {
  test::for_every_kernel([](auto c) {
    for (const auto width : test::row_sizes()) {
      auto gate_up = at::mul(c.random({5, 2 * width}), 3).contiguous();
      const auto gout = c.random({5, width});
      auto out = at::empty({5, width}, c.kType);
      const auto x = test::leaf(gate_up);
      const auto y = ops::reference::swiglu(x);
      y.backward(gout.to(at::kDouble));
      c.kernels.swiglu_backward(c.data(gout), c.data(gate_up), 5, width, c.data(gate_up), c.data(out));
      expect_close(out, y, c.allowed, "out");
      expect_close(gate_up, x.grad(), c.allowed, "gradient");
    }
  });
}

TEST(Geglu, ForwardAndBackwardInPlaceEqualTheFormulaAndAutograd) {
  test::for_every_kernel([](auto c) {
    for (const auto width : test::row_sizes()) {
      auto gate_up = at::mul(c.random({5, 2 * width}), 3).contiguous();
      const auto gout = c.random({5, width});
      auto out = at::empty({5, width}, c.kType);
      const auto x = test::leaf(gate_up);
      const auto y = ops::reference::geglu(x);
      y.backward(gout.to(at::kDouble));
      c.kernels.geglu_forward(c.data(gate_up), 5, width, c.data(out));
      expect_close(out, y, c.allowed, "forward");
      c.kernels.geglu_backward(c.data(gout), c.data(gate_up), 5, width, c.data(gate_up), c.data(out));
      expect_close(out, y, c.allowed, "out");
      expect_close(gate_up, x.grad(), c.allowed, "gradient");
    }
  });
}

TEST(Rotary, TurnsTheFirstChannelsOfAHeadWhereTablesAreShorter) {
  test::for_every_kernel([](auto c) {
    const std::int64_t rows = 6, heads = 3, head_dim = 20, half = 7;
    const auto tables = ops::rotary_tables(at::arange(rows), ops::rotary_frequencies(2 * half, 100.0), 1.25);
    const auto before = c.random({rows, heads * head_dim});
    auto turned = before.clone();
    c.kernels.rope(c.data(turned), tables.cos_NE2.template const_data_ptr<float>(),
                   tables.sin_NE2.template const_data_ptr<float>(), rows, heads * head_dim, heads, head_dim,
                   half, 1);
    const auto x = before.to(at::kDouble).reshape({rows, heads, head_dim});
    expect_close(turned.reshape({rows, heads, head_dim}),
                 ops::reference::rotary(x, tables.cos_NE2, tables.sin_NE2, 1), c.allowed);
  });
}

TEST(Swiglu, StaysFiniteForGatesThatOverflowTheExponential) {
  test::for_every_kernel([](auto c) {
    auto gate_up =
        at::tensor({-1e4, -100.0, 0.0, 100.0, 1e4, 1.0, 1.0, 1.0, 1.0, 1.0}).to(c.kType).reshape({1, 10});
    auto out = at::empty({1, 5}, c.kType);
    c.kernels.swiglu_forward(c.data(gate_up), 1, 5, c.data(out));
    expect_close(out, at::tensor({0.0, 0.0, 0.0, 100.0, 1e4}).reshape({1, 5}), c.allowed);
  });
}

TEST(Elementwise, TensorFunctionsUseTheKernelsAndAddGradientsInEveryType) {
  for (const auto type : {at::kFloat, at::kDouble, at::kBFloat16}) {
    at::manual_seed(1);
    const auto x = at::randn({700, 24}, at::kDouble).to(type), w = at::randn({24}, at::kDouble).to(type);
    const auto gy = at::randn({700, 24}, at::kDouble).to(type);
    const auto norm = ops::rms_norm(x, w, kEps);
    auto gw = at::ones({24}, type == at::kDouble ? at::kDouble : at::kFloat);
    const auto gx = ops::rms_norm_backward(gy, x, w, norm.rstd_N, at::zeros_like(x), gw);
    auto alone = at::ones_like(gw);
    test::expect_identical(ops::rms_norm_backward(gy, x, w, norm.rstd_N, {}, alone), gx, "without residual");
    const auto lx = test::leaf(x), lw = test::leaf(w);
    ops::reference::rms_norm(lx, lw, kEps).backward(gy.to(at::kDouble));
    expect_close(norm.y_ND, ops::reference::rms_norm(lx, lw, kEps), test::tolerance(type));
    expect_close(gx, lx.grad(), test::tolerance(type));
    expect_close(gw, lw.grad() + 1, 10 * test::tolerance(gw.scalar_type()));

    auto qkv = at::randn({20, 40}, at::kDouble).to(type);
    const auto before = qkv.clone();
    const auto tables = ops::rotary_tables(at::arange(20), ops::rotary_frequencies(8, 100.0));
    ops::apply_rotary(qkv, 3, 8, tables, 1);
    expect_close(qkv.narrow(1, 0, 24).reshape({20, 3, 8}),
                 ops::reference::rotary(before.narrow(1, 0, 24).reshape({20, 3, 8}).to(at::kDouble),
                                        tables.cos_NE2, tables.sin_NE2, 1),
                 test::tolerance(type));
    const auto out = ops::swiglu(before);
    expect_close(out, ops::reference::swiglu(before.to(at::kDouble)), test::tolerance(type));
  }
}

TEST(Accumulate, AddsInTheTypeOfTheSum) {
  at::manual_seed(4);
  for (const auto type : {at::kBFloat16, at::kFloat})
    for (const std::int64_t columns : {1, 7, 33000}) {
      const auto x = at::randn({3, columns}).to(type), sum = at::randn({3, columns});
      const auto expected = sum + x.to(at::kFloat);
      ops::accumulate(x, sum);
      EXPECT_TRUE(at::equal(sum, expected));
      const auto turned = at::randn({columns, 3}).to(type);  // not contiguous in the shape of the sum
      const auto expected_turned = sum + turned.t().to(at::kFloat);
      ops::accumulate(turned.t(), sum);
      EXPECT_TRUE(at::equal(sum, expected_turned));
    }
}

TEST(AccumulateRounded, GivesTheSameBitsInAnyOrder) {
  at::manual_seed(4);
  const auto unit_C = at::tensor({0x1p-14, 0x1p-18, 0x1p-11, 0x1p-15, 0x1p-15}, at::kDouble);
  const auto scale_C = unit_C * 0x1p15;
  for (const auto type : {at::kFloat, at::kDouble}) {
    std::vector<at::Tensor> parts;
    for (int i = 0; i < 9; ++i)
      parts.push_back((at::randn({5, 5}, at::kDouble) * at::outer(scale_C, scale_C) * (i + 1)).to(type));
    const auto sum_of = [&](const std::vector<std::vector<int>>& groups) {
      auto sum_CC = at::zeros({5, 5}, at::kDouble);
      for (const auto& group : groups) {
        auto part_CC = at::zeros({5, 5}, at::kDouble);
        for (const int i : group)
          ops::accumulate_rounded(parts[static_cast<std::size_t>(i)], unit_C, part_CC);
        sum_CC += part_CC;
      }
      return sum_CC;
    };
    const auto one = sum_of({{0, 1, 2, 3, 4, 5, 6, 7, 8}});
    test::expect_identical(sum_of({{0, 1, 2}, {3, 4, 5, 6}, {7, 8}}), one);
    test::expect_identical(sum_of({{8, 3}, {7, 1, 0, 2}, {6}, {5, 4}}), one);
    auto expected = at::zeros({5, 5}, at::kDouble), plain = at::zeros({5, 5}, at::kDouble);
    const auto step_CC = at::outer(unit_C, unit_C);
    for (const auto& part : parts) {
      expected += (part.to(at::kDouble) / step_CC).round() * step_CC;
      plain += part.to(at::kDouble);
    }
    test::expect_identical(one, expected);
    EXPECT_LT(((one - plain) / step_CC).abs().max().item<double>(), 9 * 0.5 + 1e-9);
    const auto turned = at::zeros({5, 5}, at::kDouble);
    ops::accumulate_rounded(parts[0].t(), unit_C, turned.t());
    const auto straight = at::zeros({5, 5}, at::kDouble);
    ops::accumulate_rounded(parts[0], unit_C, straight);
    test::expect_identical(turned, straight);
  }
}

}  // namespace
}  // namespace retort
