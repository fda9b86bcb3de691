// A block's forward and written-out backward against autograd of the plain formulas.
#include "retort/model/block.h"

#include <gtest/gtest.h>

#include "support/reference_model.h"
#include "support/tolerance.h"

namespace retort {
namespace {

using test::expect_close;

enum class Parts { both, attention_only, mlp_only, none };

architecture::Config one_block(Parts parts, std::int64_t kv_heads) {
  auto config = test::config_of({.kv_heads = kv_heads, .blocks = 1});
  if (parts == Parts::mlp_only || parts == Parts::none) config.blocks[0].attention.reset();
  if (parts == Parts::attention_only || parts == Parts::none) config.blocks[0].mlp = std::monostate{};
  return config;
}

struct BlockCase {
  explicit BlockCase(Parts parts, std::int64_t kv_heads = 2, at::ScalarType type = at::kDouble)
      : config(one_block(parts, kv_heads)),
        weights(test::lively_weights(config, 3, type)),
        layout(model::make_token_layout(config, {0, 1, 20, 33}, at::kCPU)),
        x_ND(at::randn({33, config.hidden_size}, at::kDouble).to(type)),
        gout_ND(at::randn({33, config.hidden_size}, at::kDouble).to(type)) {}
  model::BlockWeights block(const at::Tensor& flat) const {
    return model::block_weights(config.blocks[0], weights.layout.units[1], flat);
  }
  double eps() const { return config.rms_norm_eps; }

  architecture::Config config;
  model::Weights weights;
  model::TokenLayout layout;
  at::Tensor x_ND, gout_ND;
};

void expect_gradients(const BlockCase& c, double allowed) {
  const auto flat = c.weights.units[1].to(at::kDouble).clone().set_requires_grad(true);
  const auto x_ND = c.x_ND.to(at::kDouble).clone().set_requires_grad(true);
  const auto expected_ND = test::reference_block(c.block(flat), c.eps(), x_ND, c.layout);
  if (expected_ND.requires_grad()) expected_ND.backward(c.gout_ND.to(at::kDouble));

  model::BlockActivations kept;
  const auto weights = c.block(c.weights.units[1]);
  const auto out_ND = model::block_forward(weights, c.eps(), c.x_ND, c.layout, &kept);
  auto gflat = at::full_like(
      c.weights.units[1], 0.5,
      at::TensorOptions().dtype(c.weights.units[1].scalar_type() == at::kDouble ? at::kDouble : at::kFloat));
  const auto gx_ND =
      model::block_backward(weights, c.x_ND, std::move(kept), c.gout_ND, c.layout, c.block(gflat));
  expect_close(out_ND, expected_ND, allowed, "output");
  expect_close(gx_ND, x_ND.grad(), allowed, "gradient of the input");
  for (const auto& tensor : c.weights.layout.units[1].tensors)  // adds to what is there
    expect_close(gflat.narrow(0, tensor.offset, tensor.numel) - 0.5,
                 flat.grad().narrow(0, tensor.offset, tensor.numel), allowed, tensor.name.c_str());
}

TEST(Block, GradientsEqualAutogradInDouble) {
  for (const std::int64_t kv_heads : {1, 2, 4}) expect_gradients(BlockCase(Parts::both, kv_heads), 1e-11);
}

TEST(Block, WithoutAttentionOrMlpGradientsEqualAutograd) {
  expect_gradients(BlockCase(Parts::attention_only), 1e-11);
  expect_gradients(BlockCase(Parts::mlp_only), 1e-11);
  expect_gradients(BlockCase(Parts::none), 1e-11);
}

TEST(Block, GradientsInFloatAndBfloat16StayNearThoseInDouble) {
  // bfloat16: each of the dozen tensors between input and output is rounded to 8 bits, and errors of the
  // early ones grow.
  expect_gradients(BlockCase(Parts::both, 2, at::kFloat), test::tolerance(at::kFloat));
  expect_gradients(BlockCase(Parts::both, 2, at::kBFloat16), 4 * test::tolerance(at::kBFloat16));
}

TEST(Block, LeavesItsInputAndPaddingAlone) {
  const BlockCase c(Parts::both);
  const auto x_before = c.x_ND.clone(), gout_before = c.gout_ND.clone();
  model::BlockActivations kept;
  const auto weights = c.block(c.weights.units[1]);
  model::block_forward(weights, c.eps(), c.x_ND, c.layout, &kept);
  auto gflat = at::zeros_like(c.weights.units[1]);
  model::block_backward(weights, c.x_ND, std::move(kept), c.gout_ND, c.layout, c.block(gflat));
  test::expect_identical(c.x_ND, x_before);
  test::expect_identical(c.gout_ND, gout_before);
  auto outside = gflat.clone();
  for (const auto& tensor : c.weights.layout.units[1].tensors)
    outside.narrow(0, tensor.offset, tensor.numel).zero_();
  EXPECT_EQ(outside.abs().max().item<double>(), 0);
}

TEST(Block, TapsSeeTheInputsOfTheLinearLayers) {
  const BlockCase c(Parts::both);
  std::map<model::Tap, at::Tensor> seen;
  const model::BlockHooks hooks{
      .tap = [&](model::Tap tap, const at::Tensor& x_NC) { seen[tap] = x_NC.clone(); }};
  const auto weights = c.block(c.weights.units[1]);
  const auto out_ND = model::block_forward(weights, c.eps(), c.x_ND, c.layout, nullptr, &hooks);
  ASSERT_EQ(seen.size(), 4U);
  expect_close(seen[model::Tap::qkv_input],
               ops::reference::rms_norm(c.x_ND, weights.attention_norm_D, c.eps()), 1e-12);
  const auto mid_ND = c.x_ND + at::mm(seen[model::Tap::output_input], weights.output_DY.t());
  expect_close(seen[model::Tap::gate_up_input], ops::reference::rms_norm(mid_ND, weights.mlp_norm_D, c.eps()),
               1e-12);
  expect_close(out_ND, mid_ND + at::mm(seen[model::Tap::down_input], weights.down_DI.t()), 1e-12);
}

TEST(Block, AMaskedChannelIsAsGoodAsAMissingOne) {
  const BlockCase c(Parts::both);
  auto mask_I = at::ones({40}, at::kDouble);
  mask_I.narrow(0, 7, 9).zero_();
  auto cut = c.weights.units[1].clone();
  c.block(cut).down_DI.narrow(1, 7, 9).zero_();
  const model::BlockHooks hooks{.channel_mask_I = mask_I};
  expect_close(model::block_forward(c.block(c.weights.units[1]), c.eps(), c.x_ND, c.layout, nullptr, &hooks),
               model::block_forward(c.block(cut), c.eps(), c.x_ND, c.layout), 1e-13);
}

TEST(TokenLayout, PositionsBeginAnewInEachSegment) {
  const auto config = test::config_of({});
  const auto& attention = *config.blocks.front().attention;
  const auto packed_layout = model::make_token_layout(config, {0, 3, 8}, at::kCPU),
             alone_layout = model::make_token_layout(config, {0, 5}, at::kCPU);
  const auto &packed = packed_layout.turning(attention)->rotary,
             &alone = alone_layout.turning(attention)->rotary;
  test::expect_identical(packed.cos_NE2.narrow(0, 3, 5), alone.cos_NE2);
  test::expect_identical(packed.sin_NE2.narrow(0, 0, 3), alone.sin_NE2.narrow(0, 0, 3));
}

}  // namespace
}  // namespace retort
