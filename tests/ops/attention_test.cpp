// Attention in packed rows: against the plain formula in double, and its autograd.
#include "retort/ops/attention.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "ops/score_rules.h"
#include "retort/ops/path.h"
#include "retort/ops/reference/formulas.h"
#include "support/tolerance.h"

namespace retort {
namespace {

using test::expect_close;

// Queries, keys and values as views of one fused buffer, as a block makes them.
struct Inputs {
  std::int64_t heads, kv_heads, head_dim;
  std::vector<std::int64_t> starts;
  at::Tensor fused;

  at::Tensor part(const at::Tensor& x, std::int64_t begin, std::int64_t count) const {
    return x.narrow(1, begin * head_dim, count * head_dim).view({x.size(0), count, head_dim});
  }
  at::Tensor q(const at::Tensor& x) const { return part(x, 0, heads); }
  at::Tensor k(const at::Tensor& x) const { return part(x, heads, kv_heads); }
  at::Tensor v(const at::Tensor& x) const { return part(x, heads + kv_heads, kv_heads); }
};

std::vector<Inputs> all_inputs(at::ScalarType type) {
  at::manual_seed(4);
  std::vector<Inputs> list;
  for (const auto& [heads, kv_heads, head_dim] :
       {std::array<std::int64_t, 3>{1, 1, 2}, {4, 4, 8}, {6, 2, 10}, {8, 1, 64}})
    for (const auto& starts : {std::vector<std::int64_t>{0, 1}, {0, 33}, {0, 1, 2, 40, 47}, {0, 130, 250}})
      list.push_back({heads, kv_heads, head_dim, starts,
                      at::randn({starts.back(), (heads + 2 * kv_heads) * head_dim}, at::kDouble).to(type)});
  // Widths that a matrix unit takes, and more keys than a tile of it.
  for (const std::int64_t head_dim : {32, 96})
    list.push_back(
        {2, 1, head_dim, {0, 300, 301, 340}, at::randn({340, 4 * head_dim}, at::kDouble).to(type)});
  return list;
}

// With every way to make scores.
std::vector<std::pair<Inputs, ops::ScoreRule>> all_inputs_and_rules(at::ScalarType type) {
  std::vector<std::pair<Inputs, ops::ScoreRule>> list;
  for (const auto& in : all_inputs(type))
    for (const auto& rule : test::rules()) list.emplace_back(in, rule);
  return list;
}

class AttentionTest : public testing::TestWithParam<at::ScalarType> {};

TEST_P(AttentionTest, ForwardEqualsTheFormulaInEverySegment) {
  for (const auto& [in, rule] : all_inputs_and_rules(GetParam())) {
    const auto x = in.fused.to(at::kDouble);
    const auto expected = ops::reference::attention(in.q(x), in.k(x), in.v(x), in.starts, rule);
    const auto actual = ops::attention(in.q(in.fused), in.k(in.fused), in.v(in.fused), in.starts, rule);
    expect_close(actual.out_NHE, expected, test::tolerance(GetParam()));
    if (ops::path_of(at::kCPU) != ops::Path::cpu) continue;  // which keeps no log-sum-exp
    EXPECT_EQ(actual.lse_HN.sizes(), (at::IntArrayRef{in.heads, in.starts.back()}));
  }
}

TEST_P(AttentionTest, BackwardEqualsAutogradAndFillsViewsOfOneBuffer) {
  for (const auto& [in, rule] : all_inputs_and_rules(GetParam())) {
    const auto gout = at::randn({in.starts.back(), in.heads, in.head_dim}, at::kDouble).to(GetParam());
    const auto x = in.fused.to(at::kDouble).clone().set_requires_grad(true);
    ops::reference::attention(in.q(x), in.k(x), in.v(x), in.starts, rule).backward(gout.to(at::kDouble));
    const auto forward = ops::attention(in.q(in.fused), in.k(in.fused), in.v(in.fused), in.starts, rule);
    const auto grad = at::full_like(in.fused, 77);
    ops::attention_backward(gout, in.q(in.fused), in.k(in.fused), in.v(in.fused), forward, in.starts,
                            in.q(grad), in.k(grad), in.v(grad), rule);
    expect_close(grad, x.grad(), test::tolerance(GetParam()));
  }
}

// More threads than heads: tiles are divided.
TEST_P(AttentionTest, IsTheSameForAnyNumberOfThreads) {
  at::manual_seed(5);
  const std::int64_t tokens = 1500;
  const Inputs in{2, 1, 24, {0, 200, tokens}, at::randn({tokens, 4 * 24}, at::kDouble).to(GetParam())};
  const auto gout = at::randn({tokens, 2, 24}, at::kDouble).to(GetParam());
  const auto results = [&] {
    const auto forward = ops::attention(in.q(in.fused), in.k(in.fused), in.v(in.fused), in.starts);
    const auto grad = at::full_like(in.fused, 77);
    ops::attention_backward(gout, in.q(in.fused), in.k(in.fused), in.v(in.fused), forward, in.starts,
                            in.q(grad), in.k(grad), in.v(grad));
    return std::vector{forward.out_NHE, forward.lse_HN, grad};
  };
  const auto threads = at::get_num_threads();
  at::set_num_threads(1);
  const auto expected = results();
  for (const int many : {4, 5, 13}) {
    at::set_num_threads(many);
    const auto found = results();
    for (std::size_t i = 0; i < expected.size(); ++i) test::expect_identical(found[i], expected[i]);
  }
  at::set_num_threads(threads);
}

TEST_P(AttentionTest, ATokenSeesNeitherTheFutureNorAnotherSegment) {
  const auto inputs = all_inputs(GetParam());
  for (const auto& in : inputs) {
    if (in.starts.size() < 3) continue;
    const auto changed = in.fused.clone();
    const auto at = in.starts[1];  // everything from the second segment on
    changed.narrow(0, at, in.starts.back() - at).add_(1);
    const auto run = [&](const at::Tensor& x) {
      return ops::attention(in.q(x), in.k(x), in.v(x), in.starts).out_NHE;
    };
    test::expect_identical(run(changed).narrow(0, 0, at), run(in.fused).narrow(0, 0, at));
  }
}

INSTANTIATE_TEST_SUITE_P(Types, AttentionTest, testing::Values(at::kFloat, at::kDouble, at::kBFloat16),
                         [](const auto& tested) { return std::string(at::toString(tested.param)); });

}  // namespace
}  // namespace retort
