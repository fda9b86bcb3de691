// Many texts at once: the ids of each are those that it gets alone, and those of transformers.
#include "retort/eval/generate_texts.h"
#include "retort/eval/generation_config.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "retort/base/error.h"
#include "retort/eval/memory_plan.h"
#include "retort/ops/tensor_allocator.h"
#include "support/message_of.h"
#include "support/oracle_case.h"
#include "support/reference_model.h"
#include "train/lent_parameters.h"

namespace retort {
namespace {

using Ids = std::vector<std::int32_t>;

std::unique_ptr<shard::Parameters> parameters_in(const std::filesystem::path& directory) {
  return shard::resident_parameters(model::load_weights(directory, at::kFloat, at::kCPU), shard::Use::frozen,
                                    at::kFloat);
}

std::unique_ptr<shard::Parameters> little(at::ScalarType type = at::kFloat) {
  return shard::resident_parameters(test::lively_weights(test::config_of({}), 7, type), shard::Use::frozen,
                                    type);
}

std::map<std::size_t, eval::Generation> made(shard::Parameters& parameters,
                                             const std::vector<eval::Prompt>& prompts,
                                             const eval::TextsOptions& options) {
  std::map<std::size_t, eval::Generation> result;
  eval::generate_texts(parameters, prompts, options,
                       {.done = [&](std::size_t prompt, const auto& generation) {
                         EXPECT_TRUE(result.emplace(prompt, generation).second);
                       }});
  EXPECT_EQ(result.size(), prompts.size());
  return result;
}

Ids made_alone(shard::Parameters& parameters, const Ids& prompt, const eval::TextsOptions& options) {
  return made(parameters, {{prompt, 0}}, options).at(0).ids;
}

// Prompts of 1 to 70 ids, of which the pages hold one, some, and parts.
std::vector<eval::Prompt> prompts_of(std::int64_t vocab, std::int64_t most = 70) {
  std::vector<eval::Prompt> prompts;
  for (const std::int64_t length : {1, 5, 32, 33, 70, 3}) {
    eval::Prompt prompt{.number = prompts.size()};
    for (std::int64_t i = 0; i < std::min(length, most); ++i)
      prompt.ids.push_back(static_cast<std::int32_t>((17 * i + 5 * length + 3) % vocab));
    prompts.push_back(std::move(prompt));
  }
  return prompts;
}

void expect_alone(shard::Parameters& parameters, const std::vector<eval::Prompt>& prompts,
                  eval::TextsOptions options) {
  const auto together = made(parameters, prompts, options);
  options.texts_at_once = 1;
  for (std::size_t i = 0; i < prompts.size(); ++i)
    EXPECT_EQ(made(parameters, {prompts[i]}, options).at(0).ids, together.at(i).ids) << i;
}

TEST(GenerateTexts, TellTheirBeginningAndEachToken) {
  const auto parameters = little();
  const auto prompts = prompts_of(parameters->config().vocab_size, 40);
  const eval::TextsOptions options{.max_new_tokens = 5, .texts_at_once = 2};
  int begins = 0;
  std::vector<std::int64_t> tokens(prompts.size()), when_done(prompts.size());
  eval::generate_texts(
      *parameters, prompts, options,
      {.begins =
           [&] {
             ++begins;
             EXPECT_EQ(std::accumulate(tokens.begin(), tokens.end(), 0), 0);
           },
       .token = [&](std::size_t prompt) { ++tokens[prompt]; },
       .ends = {},
       .done = [&](std::size_t prompt, const auto&) { when_done[prompt] = tokens[prompt]; }});
  EXPECT_EQ(begins, 1);
  EXPECT_EQ(tokens, std::vector<std::int64_t>(prompts.size(), 5));
  EXPECT_EQ(when_done, tokens);
}

TEST(GenerateTexts, GreedyIdsAreThoseOfTransformersForEveryModel) {
  for (const auto& c : test::oracle_cases()) {
    SCOPED_TRACE(c.name);
    const auto parameters = parameters_in(c.directory);
    const auto& config = parameters->config();
    auto prompts = prompts_of(config.vocab_size, config.max_position_embeddings / 2);
    prompts.resize(3);
    prompts.insert(prompts.begin() + 1, {c.prompt, 99});
    eval::TextsOptions options{.max_new_tokens = c.new_tokens,
                               .texts_at_once = 3,
                               .stop_ids = eval::end_of_text_ids(c.directory, config)};
    EXPECT_EQ(made(*parameters, prompts, options).at(1).ids, c.greedy);
    expect_alone(*parameters, prompts, options);
  }
}

TEST(GenerateTexts, GoBeyondTheContextOfDynamicPositionsAsTransformersDoes) {
  const auto folder = test::oracles("eval");
  const auto expected = test::json_file(folder / "stretched.json");
  const auto parameters = parameters_in(folder / "stretched");
  auto prompts = prompts_of(parameters->config().vocab_size, 20);
  prompts.insert(prompts.begin() + 2, {expected.at("prompt").get<Ids>(), 99});
  const eval::TextsOptions options{.max_new_tokens = 40, .texts_at_once = 5};
  EXPECT_EQ(made(*parameters, prompts, options).at(2).ids, expected.at("greedy").get<Ids>());
  expect_alone(*parameters, prompts, options);
}

// greedy_next64 (or "greedy") of reference.json goes on behind the prompt.
void expect_greedy_of_reference(const std::filesystem::path& directory) {
  SCOPED_TRACE(directory.string());
  const auto parameters = parameters_in(directory);
  const auto reference = test::json_file(directory / "reference.json");
  if (reference.contains("greedy_prompt_ids")) {
    const Ids prompt = reference.at("greedy_prompt_ids"), answer = reference.at("greedy_next64");
    auto expected = prompt;
    expected.insert(expected.end(), answer.begin(), answer.end());
    EXPECT_EQ(made_alone(*parameters, prompt, {.max_new_tokens = 64}), expected);
    return;
  }
  for (const auto& example : reference.at("greedy")) {
    const Ids ids = example.at("ids");
    EXPECT_EQ(made_alone(*parameters, {ids.begin(), ids.end() - 48}, {.max_new_tokens = 48}), ids)
        << example.at("prompt");
  }
}

TEST(GenerateTexts, GreedyIdsOfEuropa5mAreThoseOfItsReference) {
  expect_greedy_of_reference(test::source() / "models" / "europa-5m");
}

TEST(GenerateTexts, GreedyIdsOfEveryModelAtHandAreThoseOfItsReference) {
  RETORT_SHARED_DATA_OR_SKIP(shared);
  for (const auto& entry : std::filesystem::directory_iterator(shared / "models"))
    if (std::filesystem::exists(entry.path() / "reference.json") && entry.path().filename() != "europa-5m")
      expect_greedy_of_reference(entry.path());
}

TEST(GenerateTexts, NeverHaveARowWithoutAToken) {
  const auto parameters = little();
  for (const double temperature : {0.0, 1.0}) {
    eval::TextsOptions options{.sampling = {.temperature = temperature, .seed = 5}, .max_new_tokens = 20};
    const auto any = made_alone(*parameters, {3, 4}, options);
    options.ids_without_token.assign(any.begin() + 2, any.end());  // all that were chosen
    const auto ids = made_alone(*parameters, {3, 4}, options);
    ASSERT_EQ(ids.size(), any.size());
    for (auto id = ids.begin() + 2; id != ids.end(); ++id)
      EXPECT_EQ(std::count(any.begin() + 2, any.end(), *id), 0) << "temperature " << temperature;
  }
}

TEST(GenerateTexts, AreTheSameFromTheSameSeedAndOthersFromAnother) {
  const auto parameters = little();
  const auto run = [&](double temperature, std::uint64_t seed) {
    return made_alone(*parameters, {3, 4},
                      {.sampling = {.temperature = temperature, .seed = seed}, .max_new_tokens = 30});
  };
  EXPECT_EQ(run(1, 5), run(1, 5));
  EXPECT_NE(run(1, 5), run(1, 6));
  EXPECT_NE(run(1, 5), run(0, 5));
  EXPECT_EQ(run(1e-4, 5), run(0, 0));  // nearly no temperature: the most likely token
}

TEST(GenerateTexts, DrawTokensAsOftenAsTheModelSays) {
  const auto weights = test::lively_weights(test::config_of({.vocab = 7}), 7, at::kDouble);
  const auto parameters = shard::resident_parameters(weights, shard::Use::frozen, at::kDouble);
  const auto logits = test::reference_model(weights, at::tensor({3, 4}, at::kLong), {0, 2}).logits_NV[1];
  const auto expected = at::softmax(logits / 2, -1);
  constexpr int kDraws = 1500;
  std::vector<eval::Prompt> prompts;
  for (std::uint64_t number = 0; number < kDraws; ++number) prompts.push_back({{3, 4}, number});
  std::map<std::int32_t, int> counts;
  for (const auto& [prompt, text] :
       made(*parameters, prompts, {.sampling = {.temperature = 2}, .max_new_tokens = 1, .texts_at_once = 64}))
    ++counts[text.ids.back()];
  for (std::int32_t id = 0; id < 7; ++id) {
    const double p = expected[id].item<double>();
    EXPECT_NEAR(counts[id], kDraws * p, 5 * std::sqrt(kDraws * p * (1 - p)) + 1) << "token " << id;
  }
}

TEST(GenerateTexts, AreRefusedWhereLogitsAreNotFinite) {
  auto weights = test::lively_weights(test::config_of({}), 7, at::kFloat);
  weights.tensor("model.layers.1.self_attn.o_proj.weight")[0][0] = std::numeric_limits<float>::quiet_NaN();
  const auto parameters = shard::resident_parameters(weights, shard::Use::frozen, at::kFloat);
  for (const double temperature : {0.0, 1.0})
    EXPECT_SAYS(test::message_of<base::ValidationError>(
                    [&] { made_alone(*parameters, {3}, {.sampling = {.temperature = temperature}}); }),
                "not finite");
}

// However long it is: a pass of the prompt gives the first token, and each further token takes one of its
// own.
TEST(GenerateTexts, ReadThePromptInOnePass) {
  test::LentParameters lent(little(), shard::Use::frozen);
  (void)made_alone(lent, Ids(20, 3), {.max_new_tokens = 6});
  for (std::int64_t block = 0; block < lent.layout().num_blocks(); ++block)
    EXPECT_EQ(lent.counts()[static_cast<std::size_t>(architecture::Layout::block_unit(block))].acquired, 6);
}

TEST(GenerateTexts, DrawTheSameIdsWhateverIsBesideThem) {
  for (const auto type : {at::kFloat, at::kBFloat16, at::kDouble}) {
    SCOPED_TRACE(type);
    const auto parameters = little(type);
    const auto prompts = prompts_of(parameters->config().vocab_size, 20);
    expect_alone(*parameters, prompts,
                 {.sampling = {.temperature = 1.3, .top_k = 40, .top_p = 0.95, .seed = 3},
                  .max_new_tokens = 12,
                  .texts_at_once = 7});
  }
}

TEST(GenerateTexts, WithEqualPromptsDrawOtherIds) {
  const auto parameters = little();
  const std::vector<eval::Prompt> prompts = {{{3, 4}, 0}, {{3, 4}, 1}, {{3, 4}, 0}};
  const auto texts = made(*parameters, prompts, {.sampling = {.temperature = 2}, .max_new_tokens = 20});
  EXPECT_NE(texts.at(0).ids, texts.at(1).ids);
  EXPECT_EQ(texts.at(0).ids, texts.at(2).ids);
}

// Parameters whose units are not numbers once they are released.
TEST(GenerateTexts, ReadNoUnitThatTheyDoNotHold) {
  const auto resident = little();
  const auto prompts = prompts_of(resident->config().vocab_size, 20);
  const eval::TextsOptions options{.max_new_tokens = 6, .texts_at_once = 4};
  test::LentParameters lent(little(), shard::Use::frozen);
  const auto expected = made(*resident, prompts, options);
  for (const auto& [prompt, generation] : made(lent, prompts, options))
    EXPECT_EQ(generation.ids, expected.at(prompt).ids);
}

TEST(GenerateTexts, EndWhereTheListenerAsksAndAtStopIds) {
  const auto parameters = little();
  const std::vector<eval::Prompt> prompts = {{{3, 4}, 0}, {{5, 6, 7}, 1}};
  eval::TextsOptions options{.max_new_tokens = 10};
  const auto all = made(*parameters, prompts, options);
  EXPECT_EQ(all.at(0).reason, eval::StopReason::max_new_tokens);
  options.stop_ids = {all.at(0).ids[4]};
  const auto stopped = made(*parameters, {prompts[0]}, options).at(0);
  const auto first = std::find(all.at(0).ids.begin() + 2, all.at(0).ids.end(), options.stop_ids[0]);
  EXPECT_EQ(stopped.ids, Ids(all.at(0).ids.begin(), first + 1));
  EXPECT_EQ(stopped.reason, eval::StopReason::end_of_text);
  options.stop_ids = {};
  eval::Generation asked;
  eval::generate_texts(*parameters, std::span(prompts).first(1), options,
                       {.ends = [count = 0](std::size_t, std::int32_t) mutable { return ++count == 4; },
                        .done = [&](std::size_t, const auto& generation) { asked = generation; }});
  EXPECT_EQ(asked.ids, Ids(all.at(0).ids.begin(), all.at(0).ids.begin() + 6));
  EXPECT_EQ(asked.reason, eval::StopReason::asked);
}

TEST(GenerateTexts, OfMostTokensOfTheContextSayThatItEnded) {
  const auto parameters = little();
  const auto longest = parameters->config().max_position_embeddings;
  const auto texts = made(
      *parameters,
      {{Ids(static_cast<std::size_t>(longest - 3), 5), 0}, {Ids(static_cast<std::size_t>(longest), 5), 1}},
      {.max_new_tokens = 10});
  for (const std::size_t prompt : {0, 1}) {
    EXPECT_EQ(std::ssize(texts.at(prompt).ids), longest);
    EXPECT_EQ(texts.at(prompt).reason, eval::StopReason::context);
  }
}

TEST(GenerateTexts, AreRefusedWithBadPromptsOrSampling) {
  const auto parameters = little();
  const auto refused = [&](const Ids& prompt, const eval::Sampling& sampling, std::int64_t tokens = 4) {
    const std::vector<eval::Prompt> prompts = {{prompt, 0}};
    return test::message_of<base::UsageError>([&] {
      eval::generate_texts(*parameters, prompts, {.sampling = sampling, .max_new_tokens = tokens}, {});
    });
  };
  EXPECT_NE(refused({}, {}).find("at least one token"), std::string::npos);
  EXPECT_NE(refused({1 << 20}, {}).find("knows only"), std::string::npos);
  EXPECT_SAYS(refused(Ids(65, 3), {}), "64");
  EXPECT_SAYS(refused({61}, {}), "61");
  EXPECT_SAYS(refused({-1}, {}), "-1");
  EXPECT_SAYS(refused({3}, {}, -1), "new tokens");
  EXPECT_SAYS(refused({3}, {.temperature = std::nan("")}), "temperature");
  EXPECT_NE(refused({3}, {.temperature = -1}).find("temperature"), std::string::npos);
  EXPECT_NE(refused({3}, {.top_p = 0}).find("top_p"), std::string::npos);
  EXPECT_NE(refused({3}, {.min_p = 2}).find("min_p"), std::string::npos);
  EXPECT_NE(refused({3}, {.repetition_penalty = 0}).find("repetition_penalty"), std::string::npos);
}

// The plan counts at most what is taken, and not much more than that.
TEST(GenerateTexts, TakeTheMemoryOfTheirPlan) {
  ops::install_tensor_allocator();
  const auto parameters = little();
  const auto& config = parameters->config();
  const auto prompts = prompts_of(config.vocab_size, 20);
  const eval::TextsOptions options{.max_new_tokens = 12, .texts_at_once = 4};
  const auto plan = eval::plan_texts(config, 4, prompts, options, ops::Path::cpu, eval::WeightsFrom::memory);
  const auto planned = plan.total_bytes() - plan.bytes_of("model weights");
  ops::reset_peak_tensor_bytes();
  const auto before = ops::peak_tensor_bytes();
  (void)made(*parameters, prompts, options);
  const auto taken = ops::peak_tensor_bytes() - before;
  EXPECT_LE(taken, planned);
  EXPECT_GE(taken, planned / 4);
}

// Prompts that begin with the same 70 tokens, of which two pages are read once.
TEST(GenerateTexts, WithTheSameBeginningReadItOnce) {
  auto config = test::config_of({});
  config.max_position_embeddings = 256;
  const auto weights = test::lively_weights(config, 7, at::kFloat);
  const auto parameters = shard::resident_parameters(weights, shard::Use::frozen, at::kFloat);
  const auto ids_of = [](int count, int factor) {
    Ids ids;
    for (int i = 0; i < count; ++i) ids.push_back((factor * i + 3) % 61);
    return ids;
  };
  std::vector<eval::Prompt> prompts;
  for (const int more : {0, 1, 40, 5, 90}) {
    auto ids = ids_of(70, 17);
    const auto own = ids_of(more, 5 + more);
    ids.insert(ids.end(), own.begin(), own.end());
    prompts.push_back({ids, prompts.size()});
  }
  prompts.push_back({ids_of(100, 11), prompts.size()});
  for (const std::int64_t at_once : {1, 3, 8}) {
    const eval::TextsOptions options{.max_new_tokens = 9, .texts_at_once = at_once};
    const auto together = made(*parameters, prompts, options);
    for (std::size_t i = 0; i < prompts.size(); ++i)
      EXPECT_EQ(together.at(i).ids, made_alone(*parameters, prompts[i].ids, options)) << i;
  }
}

TEST(TextDecoder, SeesWhatAnEarlierTextBeganWith) {
  auto config = test::config_of({});
  config.max_position_embeddings = 256;
  const auto resident =
      shard::resident_parameters(test::lively_weights(config, 7, at::kFloat), shard::Use::frozen, at::kFloat);
  eval::TextWeights weights(*resident);
  eval::TextDecoder decoder(weights, {.texts = 2, .longest_tokens = 128, .tokens = 256});
  Ids ids(97);
  std::iota(ids.begin(), ids.end(), 1);
  for (auto& id : ids) id %= 61;
  eval::GrowingText first{ids, 128}, second{ids, 128}, third{ids, 128};
  ASSERT_TRUE(decoder.admit(first));
  EXPECT_EQ(first.seen, 0);
  eval::GrowingText* const one[] = {&first};
  EXPECT_TRUE(decoder.gains_by_waiting(ids, one));
  const auto alone_1V = decoder.pass(one);
  EXPECT_FALSE(decoder.gains_by_waiting(ids, one));
  second.ids[70] = 0;
  ASSERT_TRUE(decoder.admit(second));
  EXPECT_EQ(second.seen, 64);  // whole pages
  decoder.release(first);
  decoder.release(second);
  ASSERT_TRUE(decoder.admit(third));  // the pages are kept while nobody needs them
  EXPECT_EQ(third.seen, 96);
  eval::GrowingText* const other[] = {&third};
  if (ops::path_of(at::kCPU) == ops::Path::cpu) {
    EXPECT_TRUE(at::equal(decoder.pass(other), alone_1V));
  }
}

// A text that goes on with many tokens at once, as a conversation does, is that of all its tokens.
TEST(TextDecoder, GoesOnWithManyTokens) {
  const auto parameters = little();
  const auto longest = parameters->config().max_position_embeddings;
  Ids ids(static_cast<std::size_t>(longest));
  std::iota(ids.begin(), ids.end(), 1);
  for (auto& id : ids) id %= static_cast<std::int32_t>(parameters->config().vocab_size);
  eval::TextWeights weights(*parameters);
  eval::TextDecoder decoder(weights, {.texts = 2, .longest_tokens = longest, .tokens = 2 * longest});
  eval::GrowingText grown{{ids.begin(), ids.begin() + 3}, longest}, whole{ids, longest};
  ASSERT_TRUE(decoder.admit(grown));
  ASSERT_TRUE(decoder.admit(whole));
  eval::GrowingText third{ids, longest};
  EXPECT_FALSE(decoder.admit(third));
  eval::GrowingText* const first[] = {&grown};
  (void)decoder.pass(first);
  grown.ids = ids;
  eval::GrowingText* const both[] = {&whole, &grown};
  const auto logits_NV = decoder.pass(both);
  if (ops::path_of(at::kCPU) == ops::Path::cpu) {
    EXPECT_TRUE(at::equal(logits_NV[0], logits_NV[1]));
  } else {
    EXPECT_TRUE(at::allclose(logits_NV[0], logits_NV[1], 1e-4, 1e-4));
  }
  decoder.release(grown);
  EXPECT_TRUE(decoder.admit(third));
}

}  // namespace
}  // namespace retort
