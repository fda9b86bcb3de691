// What is fitted has to prove itself on text that it was not fitted to; and what it is fitted to.
#include <gtest/gtest.h>

#include "retort/calibrate/hessian.h"
#include "retort/compress/compensate.h"
#include "retort/compress/compensated_layers.h"
#include "retort/compress/least_squares.h"
#include "retort/compress/surgery.h"
#include "retort/model/forward.h"
#include "retort/sparsify/sparsify.h"
#include "support/models_for_tests.h"
#include "support/random_text.h"
#include "support/text_of_fit.h"

namespace retort {
namespace {

using architecture::Kept;
using architecture::Role;

using Domains = std::vector<calibrate::SourceText>;

constexpr const char* kDown0 = "model.layers.0.mlp.down_proj.weight";
constexpr const char* kDown1 = "model.layers.1.mlp.down_proj.weight";
constexpr const char* kDown2 = "model.layers.2.mlp.down_proj.weight";

// A fit to a few tokens of three ids, with hardly a ridge, says little of text with all ids.
constexpr std::int64_t kFewTokens = 8;
constexpr double kRidge = 1e-6;
test::TextOfFit little_text() {
  return {{.fitted = test::random_domains(3, 2, kFewTokens),
           .choosing = test::random_domains(40, 3, kFewTokens),
           .judging = {}}};
}
Domains much_text() {
  return test::random_domains(40, 60, 64);
}

std::vector<std::int64_t> without(std::int64_t count, const std::vector<std::int64_t>& gone) {
  auto numbers = architecture::counted(count);
  for (const auto number : gone) std::erase(numbers, number);
  return numbers;
}

// Channel 7 of block 0 says what channel 2 says, on every text.
model::Weights model_with_a_twin() {
  auto input = test::tiny_model(test::tiny_config());
  for (const char* name : {"model.layers.0.mlp.gate_proj.weight", "model.layers.0.mlp.up_proj.weight"}) {
    auto weight = input.tensor(name);
    weight[7].copy_(weight[2]);
  }
  return input;
}

TEST(CompensationGuard, ALayerThatErrsMoreElsewhereStaysAsItWas) {
  const auto input = model_with_a_twin();
  auto candidate = architecture::with_channels(architecture::whole(input.config), 0, without(16, {7}));
  candidate = architecture::with_channels(candidate, 2, without(16, {0, 3, 4, 9}));
  const auto plain = compress::sliced(input, candidate);
  auto fitted = compress::sliced(input, candidate);
  record::Observer observer;
  const auto outcome =
      compress::compensate(input, candidate, fitted, little_text(),
                           {.dampening_fraction = kRidge, .batch_tokens = kFewTokens, .objective = {}},
                           observer)
          .value();
  ASSERT_TRUE(outcome.kept);
  ASSERT_EQ(outcome.layers.size(), 2U);
  EXPECT_TRUE(outcome.layers[0].kept);
  EXPECT_FALSE(outcome.layers[1].kept);
  EXPECT_LT(outcome.layers[1].held_out_gain, 0);
  EXPECT_GT(test::largest_difference(fitted.tensor(kDown0), plain.tensor(kDown0)), 0.01);
  EXPECT_TRUE(at::equal(fitted.tensor(kDown2), plain.tensor(kDown2)));
}

// Least squares bring the smaller model closer to the larger one, whose losses on random text may be the
// higher ones: f of losses alone then rises, and f of the KL falls.
TEST(CompensationGuard, AModelWithAHigherFStaysAsItWas) {
  const auto input = test::tiny_model(test::tiny_config());
  record::Observer observer;
  int refused = 0;
  for (const std::int64_t first : {0, 1, 2, 3, 5, 6, 8, 10}) {
    const auto candidate = architecture::with_channels(architecture::whole(input.config), 1,
                                                       without(16, {first, first + 2, first + 3, first + 5}));
    const auto compensated = [&](const calibrate::ObjectiveWeights& objective) {
      auto model = compress::sliced(input, candidate);
      const auto outcome = compress::compensate(input, candidate, model, test::text_of_fit(much_text()),
                                                {.objective = objective}, observer)
                               .value();
      EXPECT_TRUE(outcome.layers[0].kept);
      return std::pair(outcome.kept, model.tensor(kDown1).clone());
    };
    const auto plain = compress::sliced(input, candidate).tensor(kDown1);
    const auto [kept, closer] = compensated({.perplexity = 0, .kl = 1});
    ASSERT_TRUE(kept);
    const auto [kept_by_losses, result] = compensated({.perplexity = 1, .kl = 0});
    EXPECT_TRUE(at::equal(result, kept_by_losses ? closer : plain)) << first;
    EXPECT_GT(test::largest_difference(closer, plain), 0.01);
    refused += kept_by_losses ? 0 : 1;
  }
  EXPECT_GT(refused, 0);
}

TEST(CompensationGuard, OfMaskedCandidatesLeavesALayerThatErrsMoreElsewhere) {
  const auto input = model_with_a_twin();
  record::Observer observer;
  compress::CompensatedLayers layers(
      input, little_text(), {.dampening_fraction = kRidge, .batch_tokens = kFewTokens, .objective = {}}, {},
      observer);
  EXPECT_TRUE(layers.weight_DC(0, Role::down, without(16, {7})).defined());
  EXPECT_FALSE(layers.weight_DC(2, Role::down, without(16, {0, 3, 4, 9})).defined());
}

// Inputs of a layer over all text that is fitted to, through the blocks before it.
at::Tensor inputs_of(const model::Weights& weights, model::Tap wanted, std::int64_t layer) {
  std::vector<at::Tensor> inputs;
  const auto text = compress::fit_text(test::text_of_fit(much_text()), weights.config, at::kCPU, 512);
  for (std::size_t i = 0; i < text.fitted; ++i) {
    auto hidden = model::embedded(weights, text.batches[i].ids_N);
    for (std::int64_t block = 0; block <= layer; ++block) {
      const model::BlockHooks hooks{.tap = [&](model::Tap tap, const at::Tensor& x) {
        if (tap == wanted && block == layer) inputs.push_back(x.clone());
      }};
      hidden = model::block_forward(model::weights_of_block(weights, block), weights.config.rms_norm_eps,
                                    hidden, text.batches[i].layout, nullptr, &hooks);
    }
  }
  return at::cat(inputs);
}

// The least squares from the inputs of `before`, a model without what is gone, to the outputs of `input`.
at::Tensor least_squares(const model::Weights& input, const at::Tensor& weight_DI,
                         const model::Weights& before, model::Tap tap, std::int64_t block) {
  const auto outputs = at::mm(inputs_of(input, tap, block), weight_DI.t());
  return std::get<0>(at::linalg_lstsq(inputs_of(before, tap, block), outputs)).t();
}

// Three layers, each fitted to what the ones before it leave of the text.
TEST(CompensationFit, SeesTheFittedLayersBeforeIt) {
  const auto input = test::tiny_model(test::tiny_config());
  auto candidate = architecture::with_kv_groups(architecture::whole(input.config), 0, {1});
  candidate = architecture::with_channels(candidate, 0, without(16, {0, 3, 4, 9}));
  candidate = architecture::with_channels(candidate, 1, without(16, {1, 2, 8, 15}));
  const auto plain = compress::sliced(input, candidate);
  auto fitted = compress::sliced(input, candidate);
  record::Observer observer;
  const auto outcome = compress::compensate(input, candidate, fitted, test::text_of_fit(much_text()),
                                            {.dampening_fraction = 0, .objective = {}}, observer)
                           .value();
  ASSERT_TRUE(outcome.kept);
  ASSERT_EQ(outcome.layers.size(), 3U);
  for (const auto& layer : outcome.layers) ASSERT_TRUE(layer.kept) << layer.name;
  for (const auto& [name, tap, block] :
       {std::tuple("model.layers.0.self_attn.o_proj.weight", model::Tap::output_input, 0),
        {kDown0, model::Tap::down_input, 0},
        {kDown1, model::Tap::down_input, 1}}) {
    const auto expected = least_squares(input, input.tensor(name), fitted, tap, block);
    EXPECT_LT(test::largest_difference(fitted.tensor(name), expected), 1e-5)
        << name << ": float32 in the file";
    const auto blind = least_squares(input, input.tensor(name), plain, tap, block);
    if (std::string(name).find("down") != std::string::npos) {
      EXPECT_GT(test::largest_difference(blind, expected), 1e-3) << name;
    }
  }
}

// Hidden features from the middle: rows of the matrices that write them go with them.
TEST(CompensationFit, OfHiddenFeaturesIsToTheRowsThatStay) {
  const auto input = test::tiny_model(test::tiny_config());
  auto candidate = architecture::whole(input.config);
  candidate.hidden = without(16, {3, 8});
  auto fitted = compress::sliced(input, candidate);
  const auto plain = compress::sliced(input, candidate);
  record::Observer observer;
  const auto outcome = compress::compensate(input, candidate, fitted, test::text_of_fit(much_text()),
                                            {.dampening_fraction = 0, .objective = {}}, observer)
                           .value();
  ASSERT_TRUE(outcome.kept);
  ASSERT_EQ(outcome.layers.size(), 6U);
  const auto rows = model::index_tensor(candidate.hidden, at::kCPU);
  int kept = 0;
  for (const auto& layer : outcome.layers) {
    const auto name = layer.name;
    const bool is_down = name.find("down") != std::string::npos;
    const auto block = name[std::string("model.layers.").size()] - '0';
    const auto expected =
        layer.kept ? least_squares(input, input.tensor(name).index_select(0, rows), fitted,
                                   is_down ? model::Tap::down_input : model::Tap::output_input, block)
                   : plain.tensor(name);
    EXPECT_LT(test::largest_difference(fitted.tensor(name), expected), 1e-5) << name;
    kept += layer.kept ? 1 : 0;
  }
  EXPECT_GE(kept, 2);
}

// The inputs of block 0's attention are the same whatever is sparse, so what polishing makes of q, k and v
// can be had from a run that judges by the text it was fitted to.
class PolishGuard : public ::testing::Test {
 protected:
  model::Weights sparse(const Domains& fitted, const Domains& choosing, bool polish) const {
    record::Observer observer;
    sparsify::SparsifyOptions options;
    options.method = compress::SparseMethod::sparse_gpt;  // alps ends with least squares of its own
    options.polish = polish;
    options.layers = {"q_proj"};
    options.blocks = {0};
    return sparsify::sparsify(input_, {.fitted = fitted, .choosing = choosing, .judging = {}}, options, {},
                              observer)
        .weights;
  }
  double error(const Domains& domains, const model::Weights& weights) const {
    calibrate::HessianSums sums;
    for (const auto& batch : calibrate::calibration_batches(domains, input_.config, at::kCPU)) {
      const model::BlockHooks hooks{.tap = [&](model::Tap tap, const at::Tensor& x) {
        if (tap == model::Tap::qkv_input) calibrate::accumulate_hessian(sums, x, batch.sequences());
      }};
      model::block_forward(model::weights_of_block(input_, 0), input_.config.rms_norm_eps,
                           model::embedded(input_, batch.ids_N), batch.layout, nullptr, &hooks);
    }
    const auto difference = weights.tensor(kQuery) - input_.tensor(kQuery);
    return (at::mm(difference, sums.products_CC) * difference).sum().item<double>();
  }
  // What is polished errs less where it was fitted; what is kept is what errs less on the other text.
  void expect_the_better_one(const Domains& fitted, const Domains& other, bool polished_is_better) const {
    const auto plain = sparse(fitted, other, false), polished = sparse(fitted, fitted, true);
    EXPECT_LT(error(fitted, polished), error(fitted, plain));
    ASSERT_EQ(error(other, polished) < error(other, plain), polished_is_better);
    EXPECT_TRUE(at::equal(sparse(fitted, other, true).tensor(kQuery),
                          (polished_is_better ? polished : plain).tensor(kQuery)));
  }
  static constexpr const char* kQuery = "model.layers.0.self_attn.q_proj.weight";
  const model::Weights input_ = test::tiny_model(test::tiny_config());
};

TEST_F(PolishGuard, KeepsWhatErrsLessOnOtherText) {
  expect_the_better_one(test::random_domains(40, 100), much_text(), true);
}

TEST_F(PolishGuard, RefusesWhatOnlyErrsLessWhereItWasFitted) {
  expect_the_better_one(test::random_domains(40, 1, 8), much_text(), false);
}

}  // namespace
}  // namespace retort
