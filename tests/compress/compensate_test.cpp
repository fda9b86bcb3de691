#include "retort/compress/compensate.h"

#include <gtest/gtest.h>

#include "retort/base/error.h"
#include "retort/compress/surgery.h"
#include "retort/model/forward.h"
#include "support/models_for_tests.h"
#include "support/random_text.h"
#include "support/text_of_fit.h"

namespace retort {
namespace {

using architecture::Kept;
using compress::compensate;

std::vector<calibrate::SourceText> text() {
  return test::random_domains(40, 60, 64);  // eight batches of 512 tokens in each source
}

Kept without_channels(const architecture::Config& config, std::int64_t block,
                      const std::vector<std::int64_t>& gone) {
  auto candidate = architecture::whole(config);
  auto channels = candidate.find(block)->channels;
  for (const auto channel : gone) std::erase(channels, channel);
  return architecture::with_channels(candidate, block, channels);
}

double logit_error(const model::Weights& expected, const model::Weights& given) {
  double worst = 0;
  for (const auto& batch : calibrate::calibration_batches(text(), expected.config, at::kCPU))
    worst = std::max(worst, test::largest_difference(test::plain_logits(expected, batch),
                                                     test::plain_logits(given, batch)));
  return worst;
}

// The smaller model, which has to give what the larger one gives again.
model::Weights restored(const model::Weights& input, const Kept& candidate) {
  auto sliced = compress::sliced(input, candidate);
  const double before = logit_error(input, sliced);
  record::Observer observer;
  const auto outcome = compensate(input, candidate, sliced, test::text_of_fit(text()),
                                  {.dampening_fraction = 1e-10, .objective = {}}, observer)
                           .value();
  EXPECT_TRUE(outcome.kept);
  EXPECT_GT(before, 0.1);
  EXPECT_LT(logit_error(input, sliced), 1e-4) << "float32 in the file";
  return sliced;
}

// Two channels that always agree: the one that stays takes over the other's column.
TEST(Compensate, RestoresWhatAnotherChannelKnows) {
  auto input = test::tiny_model(test::tiny_config());
  for (const char* name : {"model.layers.1.mlp.gate_proj.weight", "model.layers.1.mlp.up_proj.weight"}) {
    auto weight = input.tensor(name);
    weight[7].copy_(weight[2]);
  }
  input.file_dtype = io::Dtype::f32;
  const auto candidate = without_channels(input.config, 1, {7});
  const auto sliced = restored(input, candidate);
  const auto down = input.tensor("model.layers.1.mlp.down_proj.weight");
  const auto fitted = sliced.tensor("model.layers.1.mlp.down_proj.weight");
  EXPECT_LT(test::largest_difference(fitted.select(1, 2), down.select(1, 2) + down.select(1, 7)), 1e-5);
}

// Two KV groups that always agree: the o_proj columns of the one that stays take over those of the other.
TEST(Compensate, RestoresWhatAnotherHeadKnows) {
  auto input = test::tiny_model(test::tiny_config());
  const auto copy_rows = [&](const char* name, std::int64_t rows) {
    auto weight = input.tensor(base::join("model.layers.1.self_attn.", name, ".weight"));
    weight.narrow(0, rows, rows).copy_(weight.narrow(0, 0, rows));
  };
  copy_rows("q_proj", 8);
  copy_rows("k_proj", 4);
  copy_rows("v_proj", 4);
  const auto candidate = architecture::with_kv_groups(architecture::whole(input.config), 1, {0});
  const auto sliced = restored(input, candidate);
  const auto output = input.tensor("model.layers.1.self_attn.o_proj.weight");
  EXPECT_LT(test::largest_difference(sliced.tensor("model.layers.1.self_attn.o_proj.weight"),
                                     output.narrow(1, 0, 8) + output.narrow(1, 8, 8)),
            1e-5);
}

// A row of up_proj times s and the column of down_proj divided by s make the same model, so what is fitted
// has to be the same too.
TEST(Compensate, AMassiveChannelChangesNoFit) {
  const auto plain = test::tiny_model(test::tiny_config());
  auto planted = model::converted(plain, plain.units.front().scalar_type());
  planted.tensor("model.layers.1.mlp.up_proj.weight").select(0, 2).mul_(3000);
  planted.tensor("model.layers.1.mlp.down_proj.weight").select(1, 2).div_(3000);
  const auto candidate = without_channels(plain.config, 1, {0, 3, 4, 9});
  record::Observer observer;
  const auto fitted = [&](const model::Weights& input) {
    auto sliced = compress::sliced(input, candidate);
    const auto outcome =
        compensate(input, candidate, sliced, test::text_of_fit(text()), {.objective = {}}, observer).value();
    EXPECT_TRUE(outcome.kept);
    return sliced;
  };
  EXPECT_GT(logit_error(compress::sliced(plain, candidate), fitted(plain)), 0.01);
  EXPECT_LT(logit_error(fitted(plain), fitted(planted)), 1e-5) << "float32 in the file";
}

TEST(Compensate, IsTheLeastSquaresSolution) {
  const auto input = test::tiny_model(test::tiny_config());
  const auto candidate = without_channels(input.config, 0, {0, 3, 4, 9});
  auto sliced = compress::sliced(input, candidate);
  record::Observer observer;
  compensate(input, candidate, sliced, test::text_of_fit(text()), {.dampening_fraction = 0, .objective = {}},
             observer);
  // The channels of the first block, all and kept, from the batches that were fitted to.
  std::vector<at::Tensor> all, kept;
  const auto fitted = test::text_of_fit(text()).split.fitted;
  for (const auto& batch : calibrate::calibration_batches(fitted, input.config, at::kCPU, 512)) {
    const model::BlockHooks hooks{.tap = [&](model::Tap tap, const at::Tensor& x) {
      if (tap == model::Tap::down_input) all.push_back(x.clone());
    }};
    model::block_forward(model::weights_of_block(input, 0), input.config.rms_norm_eps,
                         model::embedded(input, batch.ids_N), batch.layout, nullptr, &hooks);
    kept.push_back(all.back().index_select(1, model::index_tensor(candidate.blocks[0].channels, at::kCPU)));
  }
  const auto x = at::cat(all), x_kept = at::cat(kept);
  const auto outputs = at::mm(x, input.tensor("model.layers.0.mlp.down_proj.weight").t());
  const auto expected = std::get<0>(at::linalg_lstsq(x_kept, outputs)).t();
  EXPECT_LT(test::largest_difference(sliced.tensor("model.layers.0.mlp.down_proj.weight"), expected), 1e-5);
}

TEST(Compensate, HelpsOnTextThatItDidNotSee) {
  const auto input = test::tiny_model(test::tiny_config());
  auto candidate = without_channels(input.config, 0, {0, 3, 4, 9});
  candidate = architecture::without_block(candidate, 1);
  candidate = architecture::with_channels(candidate, 2, {1, 2, 3, 4, 5, 6, 10, 11});
  auto sliced = compress::sliced(input, candidate);
  record::Observer observer;
  const auto outcome =
      compensate(input, candidate, sliced, test::text_of_fit(text()), {.objective = {}}, observer).value();
  EXPECT_EQ(outcome.layers.size(), 2U);
  EXPECT_EQ(outcome.kept, outcome.held_out_objective_after < outcome.held_out_objective_before);
  EXPECT_TRUE(outcome.kept);
  for (const auto& layer : outcome.layers) EXPECT_EQ(layer.kept, layer.held_out_gain > 0);
}

TEST(Compensate, HasNothingToDoWhereOnlyABlockIsGone) {
  const auto input = test::tiny_model(test::tiny_config());
  const auto candidate = architecture::without_block(architecture::whole(input.config), 1);
  auto sliced = compress::sliced(input, candidate);
  record::Observer observer;
  EXPECT_FALSE(compensate(input, candidate, sliced, test::text_of_fit(text()), {.objective = {}}, observer)
                   .has_value());
}

// Half the tokens of an input, twice the ridge; with many it is the least.
TEST(LeastSquares, TheRidgeFollowsFromTokensOfAnInput) {
  EXPECT_DOUBLE_EQ(compress::dampening_of_fit(100, 1200), 2 * compress::dampening_of_fit(100, 2400));
  EXPECT_DOUBLE_EQ(compress::dampening_of_fit(100, 1200), compress::dampening_of_fit(200, 2400));
  EXPECT_DOUBLE_EQ(compress::dampening_of_fit(1, 1'000'000), 0.01);
}

}  // namespace
}  // namespace retort
