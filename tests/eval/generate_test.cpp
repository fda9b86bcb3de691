// Continuations against transformers, sampling, and where generation ends.
#include "retort/eval/generate.h"
#include "retort/eval/generation_config.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "retort/base/error.h"
#include "retort/eval/score.h"
#include "retort/model/sparsity.h"
#include "retort/ops/tensor_allocator.h"
#include "retort/ops/two_four.h"
#include "support/message_of.h"
#include "support/oracle_case.h"
#include "support/reference_model.h"
#include "support/temporary_directory.h"
#include "support/tolerance.h"
#include "train/lent_parameters.h"

namespace retort {
namespace {

using Ids = std::vector<std::int32_t>;

std::unique_ptr<shard::Parameters> parameters_of(const std::filesystem::path& directory) {
  return shard::resident_parameters(model::load_weights(directory, at::kFloat, at::kCPU), shard::Use::frozen,
                                    at::kFloat);
}

std::unique_ptr<shard::Parameters> small() {
  return shard::resident_parameters(test::lively_weights(test::config_of({}), 7, at::kFloat),
                                    shard::Use::frozen, at::kFloat);
}

TEST(Generate, GreedyIdsAreThoseOfTransformersForEveryModel) {
  for (const auto& c : test::oracle_cases()) {
    SCOPED_TRACE(c.name);
    const auto parameters = parameters_of(c.directory);
    const auto stop = eval::end_of_text_ids(c.directory, parameters->config());
    EXPECT_EQ(eval::generate(*parameters, c.prompt, {.max_new_tokens = c.new_tokens}, stop).ids, c.greedy);
  }
}

TEST(Generate, GoesOnBeyondTheContextOfDynamicPositionsAsTransformersDoes) {
  const auto folder = test::oracles("eval");
  const auto expected = test::json_file(folder / "stretched.json");
  const auto parameters = parameters_of(folder / "stretched");
  const Ids greedy = expected.at("greedy"), prompt = expected.at("prompt");
  ASSERT_LT(std::ssize(prompt), parameters->config().max_position_embeddings);
  ASSERT_GT(std::ssize(greedy), parameters->config().max_position_embeddings);
  EXPECT_EQ(eval::generate(*parameters, prompt, {.max_new_tokens = 40}, {}).ids, greedy);
}

// greedy_next64 (or "greedy") of reference.json goes on behind the prompt.
void expect_reference(const std::filesystem::path& directory) {
  SCOPED_TRACE(directory.string());
  const auto parameters = parameters_of(directory);
  const auto reference = test::json_file(directory / "reference.json");
  if (reference.contains("greedy_prompt_ids")) {
    const Ids prompt = reference.at("greedy_prompt_ids"), answer = reference.at("greedy_next64");
    auto expected = prompt;
    expected.insert(expected.end(), answer.begin(), answer.end());
    EXPECT_EQ(eval::generate(*parameters, prompt, {.max_new_tokens = 64}, {}).ids, expected);
    return;
  }
  for (const auto& example : reference.at("greedy")) {
    const Ids ids = example.at("ids");
    const auto prompt = std::span(ids).first(ids.size() - 48);
    EXPECT_EQ(eval::generate(*parameters, prompt, {.max_new_tokens = 48}, {}).ids, ids)
        << example.at("prompt");
  }
}

TEST(Generate, GreedyIdsOfEuropa5mAreThoseOfItsReference) {
  expect_reference(test::source() / "models" / "europa-5m");
}

TEST(Generate, GreedyIdsOfEveryModelAtHandAreThoseOfItsReference) {
  RETORT_SHARED_DATA_OR_SKIP(shared);
  for (const auto& entry : std::filesystem::directory_iterator(shared / "models"))
    if (std::filesystem::exists(entry.path() / "reference.json") && entry.path().filename() != "europa-5m")
      expect_reference(entry.path());
}

TEST(Generate, NeverChoosesARowWithoutAToken) {
  const auto parameters = small();
  const Ids prompt = {3, 4};
  for (const double temperature : {0.0, 1.0}) {
    eval::GenerateOptions options{.max_new_tokens = 20, .temperature = temperature, .seed = 5};
    const auto any = eval::generate(*parameters, prompt, options, {}).ids;
    options.ids_without_token.assign(any.begin() + 2, any.end());  // all that were chosen
    const auto ids = eval::generate(*parameters, prompt, options, {}).ids;
    ASSERT_EQ(ids.size(), any.size());
    for (auto id = ids.begin() + 2; id != ids.end(); ++id)
      EXPECT_EQ(std::count(any.begin() + 2, any.end(), *id), 0) << "temperature " << temperature;
  }
}

// Parameters whose units are not numbers once they are released.
TEST(Generate, ReadsNoUnitThatItDoesNotHold) {
  const Ids prompt = {3, 4};
  test::LentParameters lent(small(), shard::Use::frozen);
  EXPECT_EQ(eval::generate(lent, prompt, {.max_new_tokens = 6}, {}).ids,
            eval::generate(*small(), prompt, {.max_new_tokens = 6}, {}).ids);
}

// However long it is: a pass of the prompt gives the first token, and each further token takes one of its
// own.
TEST(Generate, ReadsThePromptInOnePass) {
  const Ids prompt(20, 3);
  test::LentParameters lent(small(), shard::Use::frozen);
  (void)eval::generate(lent, prompt, {.max_new_tokens = 6}, {});
  for (std::int64_t block = 0; block < lent.layout().num_blocks(); ++block)
    EXPECT_EQ(lent.counts()[static_cast<std::size_t>(architecture::Layout::block_unit(block))].acquired, 6);
}

// Half of each up matrix is zero, and is not read for single tokens.
TEST(Generate, GivesTheSameIdsWithoutReadingZeros) {
  ops::install_tensor_allocator();
  auto weights = test::lively_weights(test::config_of({}), 7, at::kFloat);
  weights.lineage.pattern = "2:4";
  for (const auto* name : {"model.layers.0.mlp.up_proj.weight", "model.layers.1.mlp.up_proj.weight"}) {
    weights.tensor(name).unflatten(1, {-1, 4}).narrow(2, 1, 2).zero_();
    weights.lineage.sparse_layers.push_back(name);
  }
  const auto parameters = shard::resident_parameters(weights, shard::Use::frozen, at::kFloat);
  const auto made = [&](std::span<const std::string> layers) {
    ops::reset_peak_tensor_bytes();
    auto ids = eval::generate(*parameters, Ids{3, 4}, {.max_new_tokens = 30}, {}, layers).ids;
    return std::pair(std::move(ids), ops::peak_tensor_bytes());
  };
  const auto packed = model::packed_layers(weights.lineage, at::kCPU, at::kFloat);
  const auto [ids, peak_bytes] = made(packed);
  const auto [expected_ids, least_bytes] = made({});
  EXPECT_EQ(ids, expected_ids);
  constexpr std::int64_t kOfMalloc_bytes = 1024;  // it gives small blocks some bytes more, and not always
  EXPECT_GE(peak_bytes - least_bytes + kOfMalloc_bytes, model::packed_bytes(weights.layout, packed, 4));
  EXPECT_EQ(packed.empty(), !ops::packs_two_four(at::kCPU, at::kFloat));
}

TEST(Generate, StopsAfterAnEndOfTextId) {
  const auto parameters = small();
  const Ids prompt = {3, 4};
  const auto all = eval::generate(*parameters, prompt, {.max_new_tokens = 10}, {});
  ASSERT_EQ(all.ids.size(), 12U);
  EXPECT_EQ(all.reason, eval::StopReason::max_new_tokens);
  const Ids stop = {all.ids[5]};
  const auto cut = eval::generate(*parameters, prompt, {.max_new_tokens = 10}, stop);
  EXPECT_EQ(cut.reason, eval::StopReason::end_of_text);
  EXPECT_EQ(cut.ids.back(), stop[0]);
  EXPECT_LE(cut.ids.size(), 6U);
}

TEST(Generate, StopsAtTheModelsContext) {
  const auto parameters = small();  // made for 64 tokens
  const auto result = eval::generate(*parameters, Ids(60, 5), {.max_new_tokens = 10}, {});
  EXPECT_EQ(result.ids.size(), 64U);
  EXPECT_EQ(result.reason, eval::StopReason::context);
  EXPECT_EQ(result.prompt_tokens, 60);
}

TEST(Generate, SamplesTheSameFromTheSameSeedAndOthersFromAnother) {
  const auto parameters = small();
  const auto run = [&](double temperature, std::uint64_t seed) {
    return eval::generate(*parameters, Ids{3, 4},
                          {.max_new_tokens = 30, .temperature = temperature, .seed = seed}, {})
        .ids;
  };
  EXPECT_EQ(run(1, 5), run(1, 5));
  EXPECT_NE(run(1, 5), run(1, 6));
  EXPECT_NE(run(1, 5), run(0, 5));
  EXPECT_EQ(run(1e-4, 5), run(0, 0));  // nearly no temperature: the most likely token
}

TEST(Generate, DrawsTokensAsOftenAsTheModelSays) {
  const auto weights = test::lively_weights(test::config_of({.vocab = 7}), 7, at::kDouble);
  const auto parameters = shard::resident_parameters(weights, shard::Use::frozen, at::kDouble);
  const auto logits = test::reference_model(weights, at::tensor({3, 4}, at::kLong), {0, 2}).logits_NV[1];
  const auto expected = at::softmax(logits / 2, -1);
  constexpr int kDraws = 1500;
  std::map<std::int32_t, int> counts;
  for (std::uint64_t seed = 0; seed < kDraws; ++seed)
    ++counts[eval::generate(*parameters, Ids{3, 4}, {.max_new_tokens = 1, .temperature = 2, .seed = seed}, {})
                 .ids.back()];
  for (std::int32_t id = 0; id < 7; ++id) {
    const double p = expected[id].item<double>();
    EXPECT_NEAR(counts[id], kDraws * p, 5 * std::sqrt(kDraws * p * (1 - p)) + 1) << "token " << id;
  }
}

TEST(Generate, RefusesWhatCannotBeContinued) {
  const auto parameters = small();
  const auto refused = [&](const Ids& prompt, eval::GenerateOptions options) {
    return test::message_of<base::UsageError>([&] { eval::generate(*parameters, prompt, options, {}); });
  };
  EXPECT_SAYS(refused({}, {}), "prompt");
  EXPECT_SAYS(refused(Ids(65, 3), {}), "64");
  EXPECT_SAYS(refused({61}, {}), "61");
  EXPECT_SAYS(refused({-1}, {}), "-1");
  EXPECT_SAYS(refused({3}, {.temperature = -1}), "temperature");
  EXPECT_SAYS(refused({3}, {.temperature = std::nan("")}), "temperature");
  EXPECT_SAYS(refused({3}, {.max_new_tokens = -1}), "new tokens");
}

TEST(Generate, RefusesLogitsThatAreNotFinite) {
  auto weights = test::lively_weights(test::config_of({}), 7, at::kFloat);
  weights.tensor("model.layers.1.self_attn.o_proj.weight")[0][0] = std::numeric_limits<float>::quiet_NaN();
  const auto parameters = shard::resident_parameters(weights, shard::Use::frozen, at::kFloat);
  for (const double temperature : {0.0, 1.0})
    EXPECT_SAYS(test::message_of<base::ValidationError>(
                    [&] { eval::generate(*parameters, Ids{3}, {.temperature = temperature}, {}); }),
                "not finite");
}

TEST(HeadScorer, MakesTheSameLogitsWhetherItsMatrixIsWidenedOrNot) {
  const auto weights = test::lively_weights(test::config_of({}), 7, at::kBFloat16);
  const auto& flat = weights.units[static_cast<std::size_t>(weights.layout.head_unit())];
  const auto logits = [&](eval::HeadMatrix matrix, const at::Tensor& hidden_RD) {
    return eval::HeadScorer(weights.config, weights.layout, flat, 0, matrix).logits(hidden_RD);
  };
  for (const std::int64_t rows : {1, 3}) {
    const auto hidden_RD = at::randn({rows, weights.config.hidden_size}).to(at::kBFloat16);
    const auto found_RV = logits(eval::HeadMatrix::as_it_is, hidden_RD);
    EXPECT_EQ(found_RV.scalar_type(), at::kFloat);
    test::expect_close(found_RV, logits(eval::HeadMatrix::widened, hidden_RD), test::tolerance(at::kFloat));
  }
}

TEST(EndOfText, ComesFromTheGenerationConfigurationWhereItNamesAny) {
  const test::TemporaryDirectory directory;
  const auto config = test::config_of({});
  const auto with = [&](const std::string& text) {
    base::write_file_atomically(directory / "generation_config.json", text);
    return eval::end_of_text_ids(directory.path(), config);
  };
  EXPECT_EQ(eval::end_of_text_ids(directory.path(), config), Ids{2});
  EXPECT_EQ(with(R"({"eos_token_id": 5})"), Ids{5});
  EXPECT_EQ(with(R"({"eos_token_id": [5, 7]})"), (Ids{5, 7}));
  EXPECT_EQ(with(R"({"eos_token_id": null})"), Ids{2});
  EXPECT_EQ(with("{}"), Ids{2});
  for (const char* bad :
       {"[", "[1]", R"({"eos_token_id": "x"})", R"({"eos_token_id": 61})", R"({"eos_token_id": [-1]})"})
    EXPECT_SAYS(test::message_of<base::ModelError>([&] { with(bad); }), "generation_config.json");
}

}  // namespace
}  // namespace retort
