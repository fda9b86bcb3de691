// Which ids may be drawn, and how often.
#include "retort/eval/sampling.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <set>

#include "retort/base/error.h"
#include "retort/base/json.h"
#include "support/message_of.h"
#include "support/outside_data.h"

namespace retort {
namespace {

const std::vector<float> kLogits_V = {1.0F, 3.0F, 2.0F, 3.0F, -1.0F};

std::map<std::int32_t, int> counts(const eval::Sampling& sampling, int draws = 4000,
                                   const std::vector<std::int32_t>& ids = {},
                                   const std::vector<std::int32_t>& no_token = {}) {
  base::Random random(1, base::stream_of("test"));
  std::map<std::int32_t, int> result;
  for (int i = 0; i < draws; ++i) ++result[eval::next_id(kLogits_V, ids, sampling, no_token, random)];
  return result;
}

std::set<std::int32_t> drawn(const eval::Sampling& sampling, const std::vector<std::int32_t>& ids = {},
                             const std::vector<std::int32_t>& no_token = {}) {
  std::set<std::int32_t> result;
  for (const auto& [id, count] : counts(sampling, 4000, ids, no_token)) result.insert(id);
  return result;
}

using Set = std::set<std::int32_t>;

TEST(Sampling, AtTemperatureZeroTakesTheFirstOfTheMostLikely) {
  EXPECT_EQ(drawn({}), Set({1}));
  EXPECT_EQ(drawn({}, {}, {1}), Set({3}));
  EXPECT_EQ(drawn({.repetition_penalty = 2}, {1}), Set({3}));
}

TEST(Sampling, DrawsByProbability) {
  const double temperature = 0.8;
  double sum = 0;
  for (const double logit : kLogits_V) sum += std::exp(logit / temperature);
  constexpr int kDraws = 40'000;
  const auto found = counts({.temperature = temperature}, kDraws);
  for (std::int32_t id = 0; id < 5; ++id) {
    const double p = std::exp(kLogits_V[static_cast<std::size_t>(id)] / temperature) / sum;
    EXPECT_NEAR(found.contains(id) ? found.at(id) : 0, p * kDraws, 5 * std::sqrt(p * (1 - p) * kDraws)) << id;
  }
}

// Probabilities are .054, .399, .147, .399 and .007.
TEST(Sampling, LeavesOutTheUnlikely) {
  EXPECT_EQ(drawn({.temperature = 1, .top_k = 3}), Set({1, 2, 3}));
  EXPECT_EQ(drawn({.temperature = 1, .top_k = 1}),
            Set({1, 3}));  // as likely as the first, as in transformers
  EXPECT_EQ(drawn({.temperature = 1, .top_k = 100}), Set({0, 1, 2, 3, 4}));
  EXPECT_EQ(drawn({.temperature = 1, .top_p = 0.3}), Set({1}));
  EXPECT_EQ(drawn({.temperature = 1, .top_p = 0.79}), Set({1, 3}));
  EXPECT_EQ(drawn({.temperature = 1, .top_p = 0.81}), Set({1, 2, 3}));
  EXPECT_EQ(drawn({.temperature = 1, .min_p = 0.5}), Set({1, 3}));
  EXPECT_EQ(drawn({.temperature = 1, .min_p = 0.1}), Set({0, 1, 2, 3}));
  // A share of what top_k left: .399, .399 of .945.
  EXPECT_EQ(drawn({.temperature = 1, .top_k = 3, .top_p = 0.84}), Set({1, 3}));
  // The temperature comes first: at 0.1 the two most likely have all but 5e-5.
  EXPECT_EQ(drawn({.temperature = 0.1, .top_p = 0.999}), Set({1, 3}));
}

TEST(Sampling, MakesIdsOfTheTextLessLikely) {
  // 3 / 4 and -1 * 4: both ids of the text fall below the others.
  EXPECT_EQ(drawn({.temperature = 1, .top_k = 3, .repetition_penalty = 4}, {1, 4, 1}), Set({0, 2, 3}));
}

// Sums are float64 in both, added up in another order.
constexpr double kOtherOrder = 1e-12;

eval::Sampling sampling_of(const base::Json& settings) {
  eval::Sampling sampling{.temperature = settings.value("temperature", 1.0)};
  sampling.top_k = settings.value("top_k", std::int64_t{0});
  sampling.top_p = settings.value("top_p", 1.0);
  sampling.min_p = settings.value("min_p", 0.0);
  sampling.repetition_penalty = settings.value("repetition_penalty", 1.0);
  return sampling;
}

TEST(Sampling, LeavesWhatTransformersLeavesAndAsLikely) {
  std::ifstream lines(test::oracles("sampling") / "cases.jsonl");
  std::size_t cases = 0;
  for (std::string line; std::getline(lines, line); ++cases) {
    const auto json = base::parse_json(line);
    const auto logits_V = json.at("logits").get<std::vector<double>>();
    const auto ids = json.at("ids").get<std::vector<std::int32_t>>();
    const auto candidates = eval::candidates_of(logits_V, ids, sampling_of(json.at("settings")), {});
    double sum = 0;
    for (const auto& candidate : candidates) sum += candidate.weight;
    const auto& left = json.at("left");
    EXPECT_EQ(candidates.size(), left.size()) << json.at("settings");
    for (const auto& candidate : candidates) {
      const auto expected = left.value(std::to_string(candidate.id), -1.0);
      EXPECT_NEAR(candidate.weight / sum, expected, kOtherOrder) << json.at("settings") << candidate.id;
    }
  }
  EXPECT_EQ(cases, 200U);
}

TEST(Sampling, OfWhatIsNotFiniteIsRefused) {
  base::Random random(1, 1);
  for (const float bad : {NAN, INFINITY, -INFINITY}) {
    const std::vector<float> logits_V = {0, bad};
    EXPECT_NE(test::message_of<base::ValidationError>([&] {
                eval::next_id(logits_V, {}, {}, {}, random);
              }).find("not finite"),
              std::string::npos);
  }
}

}  // namespace
}  // namespace retort
