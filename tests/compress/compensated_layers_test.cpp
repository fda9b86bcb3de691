#include "retort/compress/compensated_layers.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "retort/compress/least_squares.h"
#include "retort/compress/surgery.h"
#include "retort/model/forward.h"
#include "retort/prune/evaluator.h"
#include "support/models_for_tests.h"
#include "support/random_text.h"
#include "support/temporary_directory.h"
#include "support/text_of_fit.h"

namespace retort {
namespace {

using architecture::Kept;
using architecture::Role;
using compress::CompensatedLayers;

std::vector<calibrate::SourceText> text() {
  return test::random_domains(40, 60, 64);  // eight batches of 512 tokens in each source
}

std::vector<std::int64_t> odd(std::int64_t count) {
  std::vector<std::int64_t> numbers;
  for (std::int64_t number = 1; number < count; number += 2) numbers.push_back(number);
  return numbers;
}

// Inputs of a layer of block 0 over all batches that are fitted to.
at::Tensor inputs_of_block_0(const model::Weights& input, model::Tap wanted) {
  std::vector<at::Tensor> inputs;
  const auto text_of_fit = compress::fit_text(test::text_of_fit(text()), input.config, at::kCPU, 512);
  for (std::size_t i = 0; i < text_of_fit.fitted; ++i) {
    const model::BlockHooks hooks{.tap = [&](model::Tap tap, const at::Tensor& x) {
      if (tap == wanted) inputs.push_back(x.clone());
    }};
    const auto& batch = text_of_fit.batches[i];
    model::block_forward(model::weights_of_block(input, 0), input.config.rms_norm_eps,
                         model::embedded(input, batch.ids_N), batch.layout, nullptr, &hooks);
  }
  return at::cat(inputs);
}

void expect_least_squares(const model::Weights& input, Role layer, model::Tap tap, const char* name) {
  const auto weight = input.tensor(name);
  const auto kept = odd(weight.size(1));
  record::Observer observer;
  CompensatedLayers layers(input, test::text_of_fit(text()), {.dampening_fraction = 0, .objective = {}}, {},
                           observer);
  const auto x = inputs_of_block_0(input, tap), index = model::index_tensor(kept, at::kCPU);
  const auto solution = std::get<0>(at::linalg_lstsq(x.index_select(1, index), at::mm(x, weight.t()))).t();
  const auto expected = at::zeros_like(weight).index_copy_(1, index, solution);
  EXPECT_LT(test::largest_difference(layers.weight_DC(0, layer, kept), expected), 1e-5)
      << name << ": float32 in the file";
}

TEST(CompensatedLayers, AreTheLeastSquaresSolution) {
  const auto input = test::tiny_model(test::tiny_config());
  expect_least_squares(input, Role::down, model::Tap::down_input, "model.layers.0.mlp.down_proj.weight");
  expect_least_squares(input, Role::output, model::Tap::output_input,
                       "model.layers.0.self_attn.o_proj.weight");
}

// Where nothing was removed before a layer its inputs are those of the whole model, so the masked candidate
// gives what the compensated model gives.
TEST(CompensatedLayers, GiveTheObjectiveOfTheModelThatCompensationMakes) {
  const auto input = test::tiny_model(test::tiny_config());
  const auto [fitted, choosing, none, cut] = test::text_of_fit(text()).split;
  const calibrate::ObjectiveWeights divergence{.perplexity = 0, .kl = 1};  // losses on random text may fall
  const prune::Evaluator after(input, choosing, {.weights = divergence, .fitted = &fitted}),
      before(input, choosing, {.weights = divergence});
  ASSERT_TRUE(after.after_compensation());
  const auto whole = architecture::whole(input.config);
  for (const auto& candidate :
       {architecture::with_channels(whole, 0, odd(16)), architecture::with_kv_groups(whole, 0, {0})}) {
    auto model = compress::sliced(input, candidate);
    record::Observer observer;
    const auto outcome =
        compress::compensate(input, candidate, model, {fitted, choosing}, {.objective = divergence}, observer)
            .value();
    ASSERT_TRUE(outcome.kept);
    const auto expected = before.evaluate_exactly(model).mean.objective;
    EXPECT_NEAR(after.evaluate(candidate).mean.objective, expected, 1e-6) << "float32 in the file";
    EXPECT_GT(before.evaluate(candidate).mean.objective, expected + 0.01);
  }
}

TEST(CompensatedLayers, AreTheSameWhereverTheSumsAreAndWhateverWasForgotten) {
  const auto input = test::tiny_model(test::tiny_config());
  const test::TemporaryDirectory directory;
  record::Observer observer;
  CompensatedLayers roomy(input, test::text_of_fit(text()), {.objective = {}}, {}, observer);
  CompensatedLayers narrow(input, test::text_of_fit(text()), {.objective = {}},
                           {.sums_bytes = 0, .scratch = directory / "scratch", .weights_bytes = 1}, observer);
  EXPECT_TRUE(std::filesystem::exists(directory / "scratch"))
      << "the sums are there, in a file without a name";
  // Four candidates, one after the other, twice: more than the two that stay in memory.
  for (int round = 0; round < 2; ++round)
    for (const std::int64_t width : {6, 9, 12, 15})
      for (std::int64_t block = 0; block < 3; ++block) {
        const auto kept = architecture::counted(width);
        EXPECT_TRUE(
            at::equal(narrow.weight_DC(block, Role::down, kept), roomy.weight_DC(block, Role::down, kept)));
        EXPECT_TRUE(at::equal(narrow.weight_DC(block, Role::output, kept),
                              roomy.weight_DC(block, Role::output, kept)));
      }
}

// A layer that is sparse would not stay so.
TEST(CompensatedLayers, LeaveSparseLayersAlone) {
  auto input = test::tiny_model(test::tiny_config());
  input.lineage.sparse_layers = {"model.layers.1.mlp.down_proj.weight"};
  record::Observer observer;
  CompensatedLayers layers(input, test::text_of_fit(text()), {.objective = {}}, {}, observer);
  EXPECT_FALSE(layers.weight_DC(1, Role::down, odd(16)).defined());
  EXPECT_TRUE(layers.weight_DC(2, Role::down, odd(16)).defined());
}

// As large models have them: sums in float32, with an input that is always 0.
TEST(LeastSquares, OfFloat32SumsAreThoseOfFloat64UpToRounding) {
  at::manual_seed(3);
  const auto x_NI = at::randn({400, 12}, at::kDouble);
  x_NI.select(1, 4).zero_();
  x_NI.select(1, 7).mul_(1000);  // a massive input
  const auto weight_DI = at::randn({5, 12}, at::kDouble), kept_NK = x_NI.narrow(1, 2, 8);
  const auto kept_DK = weight_DI.narrow(1, 2, 8);
  compress::LeastSquaresSums wide;
  wide.add(x_NI, kept_NK);
  const compress::LeastSquaresSums narrow{.kept_KK = wide.kept_KK.to(at::kFloat),
                                          .cross_IK = wide.cross_IK.to(at::kFloat)};
  const auto expected = compress::least_squares(weight_DI, kept_DK, wide, 0.01);
  const auto found =
      compress::least_squares(weight_DI.to(at::kFloat), kept_DK.to(at::kFloat), narrow, 0.01).to(at::kDouble);
  EXPECT_LT(test::largest_difference(found, expected), 1e-4);
  const double gain = wide.gain(weight_DI, kept_DK, expected);
  EXPECT_NEAR(narrow.gain(weight_DI.to(at::kFloat), kept_DK.to(at::kFloat), found.to(at::kFloat)), gain,
              1e-3 * gain);
  // Its definition, from the outputs.
  const auto error = [&](const at::Tensor& fitted_DK) {
    return (at::mm(kept_NK, fitted_DK.t()) - at::mm(x_NI, weight_DI.t())).square().sum().item<double>();
  };
  EXPECT_NEAR(gain, error(kept_DK) - error(expected), 1e-9 * error(kept_DK));
  EXPECT_GT(gain, 0);
}

}  // namespace
}  // namespace retort
