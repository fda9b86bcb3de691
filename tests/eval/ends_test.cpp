// Likelihoods of the ends of texts: those that transformers' logits give, whatever goes through beside.
#include "retort/eval/ends.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "retort/architecture/longest_context.h"
#include "retort/base/error.h"
#include "retort/base/index.h"
#include "retort/shard/weights_of_machine.h"
#include "support/message_of.h"
#include "support/oracle_case.h"
#include "support/ranks.h"
#include "support/reference_model.h"
#include "support/tolerance.h"

namespace retort {
namespace {

std::unique_ptr<shard::Parameters> frozen(const model::Weights& weights) {
  return shard::resident_parameters(weights, shard::Use::frozen, at::kFloat);
}

model::Weights small_weights(const architecture::Config& config = test::config_of({})) {
  return test::lively_weights(config, 7, at::kFloat);
}

// By the logits of the text alone, in float64.
eval::EndScore expected_of(const at::Tensor& logits_NV, const eval::TextEnd& text) {
  eval::EndScore score{0, true};
  const auto length = std::ssize(text.ids);
  for (auto token = length - text.scored; token < length; ++token) {
    const auto row_V = logits_NV[token - 1].to(at::kDouble);
    const auto id = text.ids[base::to_size(token)];
    score.log_likelihood += at::log_softmax(row_V, 0)[id].item<double>();
    score.greedy = score.greedy && row_V.argmax().item<std::int64_t>() == id;
  }
  return score;
}

double allowed_of(const eval::TextEnd& text) {
  return test::kLikelihoodOfToken * static_cast<double>(text.scored);
}

TEST(Ends, AreThoseOfTransformersLogitsForEveryModel) {
  for (const auto& c : test::oracle_cases()) {
    SCOPED_TRACE(c.name);
    const auto parameters = frozen(model::load_weights(c.directory, at::kFloat, at::kCPU));
    const eval::Subject subject("m", *parameters);
    std::vector<eval::TextEnd> texts;
    std::vector<eval::EndScore> expected;
    for (std::size_t i = 0; i + 1 < std::min<std::size_t>(c.starts.size(), 4); ++i) {
      const auto begin = c.starts[i], length = c.starts[i + 1] - begin;
      if (length > architecture::longest_context(parameters->config())) continue;
      // The last token is not read: with one more the model reads what transformers read.
      std::vector<std::int32_t> ids(c.ids.begin() + begin, c.ids.begin() + begin + length);
      ids.push_back(3);
      // Several that begin alike: a whole text by one token and by all, and half of it.
      for (const auto scored : {std::int64_t{1}, length}) {
        texts.push_back({ids, scored});
        expected.push_back(expected_of(c.logits_NV.narrow(0, begin, length), texts.back()));
      }
      texts.push_back({{ids.begin(), ids.begin() + (length + 1) / 2 + 1}, 1});
      expected.push_back(eval::score_ends(subject, std::span(texts).last(1)).front());
    }
    const auto scores = eval::score_ends(subject, texts);
    ASSERT_EQ(scores.size(), expected.size());
    for (std::size_t i = 0; i < scores.size(); ++i) {
      EXPECT_NEAR(scores[i].log_likelihood, expected[i].log_likelihood, allowed_of(texts[i])) << i;
      EXPECT_EQ(scores[i].greedy, expected[i].greedy) << i;
    }
  }
}

// Questions of up to 50 tokens, each with four answers.
std::vector<eval::TextEnd> questions(std::int64_t vocab) {
  std::vector<eval::TextEnd> texts;
  for (std::int32_t question = 0; question < 9; ++question)
    for (std::int32_t answer = 0; answer < 4; ++answer) {
      eval::TextEnd text{.scored = 1 + answer};
      for (std::int32_t i = 0; i < 10 + 5 * question; ++i)
        text.ids.push_back(static_cast<std::int32_t>((7 * i + 3 * question) % vocab));
      for (std::int32_t i = 0; i <= answer; ++i)
        text.ids.push_back(static_cast<std::int32_t>((11 * answer + i) % vocab));
      texts.push_back(std::move(text));
    }
  return texts;
}

TEST(Ends, DoNotDependOnWhatGoesThroughBeside) {
  const auto parameters = frozen(small_weights());
  const eval::Subject subject("m", *parameters);
  const auto texts = questions(parameters->config().vocab_size);
  const auto together = eval::score_ends(subject, texts);
  std::int64_t last = 0;
  const auto few = eval::score_ends(subject, texts, {.tokens = 60, .head_rows = 3},
                                    [&](std::int64_t done, std::int64_t all) {
                                      EXPECT_GT(done, last);
                                      EXPECT_EQ(all, std::ssize(texts));
                                      last = done;
                                    });
  EXPECT_EQ(last, std::ssize(texts));
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const auto alone = eval::score_ends(subject, std::span(texts).subspan(i, 1)).front();
    EXPECT_NEAR(together[i].log_likelihood, alone.log_likelihood, allowed_of(texts[i])) << i;
    EXPECT_NEAR(few[i].log_likelihood, alone.log_likelihood, allowed_of(texts[i])) << i;
    EXPECT_EQ(together[i].greedy, alone.greedy) << i;
  }
}

TEST(Ends, AWindowSeesAsFarBehindASharedBeginning) {
  auto config = test::config_of({});
  config.blocks[1].attention->kind.window = 7;
  const auto parameters =
      shard::resident_parameters(test::lively_weights(config, 7, at::kFloat), shard::Use::frozen, at::kFloat);
  const eval::Subject subject("m", *parameters);
  const auto texts = questions(config.vocab_size);
  const auto together = eval::score_ends(subject, texts);
  for (std::size_t i = 0; i < texts.size(); ++i)
    EXPECT_NEAR(together[i].log_likelihood,
                eval::score_ends(subject, std::span(texts).subspan(i, 1)).front().log_likelihood,
                allowed_of(texts[i]))
        << i;
}

TEST(Ends, RanksHaveTheScoresOfOne) {
  const auto weights = small_weights();
  const auto whole = frozen(weights);
  const auto texts = questions(whole->config().vocab_size);
  const eval::Subject subject("m", *whole);
  const auto expected = eval::score_ends(subject, texts, {.tokens = 60});
  for (const int ranks : {1, 2, 3})
    test::on_ranks(ranks, [&](comm::Group& group) {
      EXPECT_EQ(eval::score_ends(subject, texts, {.tokens = 60, .group = &group}), expected);
    });
  // Nobody holds a whole model, and three ranks have no batch in the last round.
  for (const int ranks : {2, 3})
    test::on_ranks(
        ranks,
        [&](comm::Group& group) {
          const auto parts = shard::read_only_model(model::source_of(weights), at::kFloat, at::kCPU, group);
          ASSERT_FALSE(parts.parameters->resident());
          const eval::Subject own("m", *parts.parameters);
          EXPECT_EQ(eval::score_ends(own, texts, {.tokens = 60, .group = &group}), expected);
          group.barrier();
        },
        /*common_blocks=*/false);
}

TEST(Ends, WhatCannotBeScoredIsSaid) {
  const auto parameters = frozen(small_weights());
  const eval::Subject subject("m", *parameters);
  const auto message = [&](const eval::TextEnd& text) {
    return test::message_of<base::Error>([&] { (void)eval::score_ends(subject, std::span(&text, 1)); });
  };
  EXPECT_NE(message({{1, 2}, 2}).find("2 to score"), std::string::npos);
  EXPECT_NE(message({{1, 2}, 0}).find("0 to score"), std::string::npos);
  EXPECT_NE(message({{1, 61}, 1}).find("token 61"), std::string::npos);
  const auto longest = architecture::longest_context(parameters->config());
  EXPECT_NE(message({std::vector<std::int32_t>(base::to_size(longest + 2), 3), 1}).find("at most"),
            std::string::npos);
  const std::vector<eval::TextEnd> whole{{std::vector<std::int32_t>(base::to_size(longest + 1), 3), 1}};
  EXPECT_NO_THROW((void)eval::score_ends(subject, whole));
}

TEST(Ends, ADamagedModelIsNamed) {
  auto weights = small_weights();
  weights.tensor("model.layers.0.mlp.up_proj.weight")[0][0] = std::numeric_limits<float>::quiet_NaN();
  const auto damaged = frozen(weights);
  const eval::Subject subject("m", *damaged);
  const std::vector<eval::TextEnd> texts{{{1, 60, 3}, 1}};
  EXPECT_THROW(eval::score_ends(subject, texts), base::ValidationError);
}

}  // namespace
}  // namespace retort
