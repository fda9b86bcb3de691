#include "retort/eval/selection.h"

#include <gtest/gtest.h>

#include "retort/base/error.h"
#include "retort/eval/change.h"
#include "support/message_of.h"

namespace retort::eval {
namespace {

// One source of documents of 10 tokens with these losses per token.
ModelScores model_of(const std::string& name, const std::vector<double>& losses) {
  SourceScores source;
  source.name = "manuals";
  for (std::size_t i = 0; i < losses.size(); ++i) {
    source.documents.push_back({{static_cast<std::int64_t>(i), 7 * i, 50}, 10, 10 * losses[i]});
    source.sums.targets += 10;
    source.sums.nll += 10 * losses[i];
  }
  ModelScores model;
  model.name = name;
  model.sources.push_back(source);
  return model;
}

const std::vector<double> kBest{1, 2, 3, 4, 5, 6, 7, 8}, kMixed{1.5, 1.6, 3.5, 3.6, 5.5, 5.7, 7.6, 7.4},
    kWorse{1.1, 2.12, 3.09, 4.11, 5.1, 6.1, 7.08, 8.12};

TEST(Selection, ComparesDocumentByDocument) {
  const std::vector models{model_of("worse", kWorse), model_of("best", kBest), model_of("mixed", kMixed)};
  const auto found = standings(models);
  ASSERT_EQ(found.size(), 3U);
  EXPECT_DOUBLE_EQ(found[1].nll, 4.5);
  EXPECT_EQ(found[1].behind, 0);
  EXPECT_TRUE(found[1].tied);
  EXPECT_NEAR(found[0].behind, 0.82 / 8, 1e-12);
  EXPECT_FALSE(found[0].tied) << "a little worse, but on every document";
  EXPECT_GT(found[0].interval.value().low, 0);
  EXPECT_NEAR(found[2].behind, 0.4 / 8, 1e-12);
  EXPECT_TRUE(found[2].tied) << "better on half of the documents";
  EXPECT_LT(found[2].interval.value().low, 0);
}

TEST(Change, IsThatOfFDocumentByDocument) {
  auto before = model_of("pruned", kBest), after = model_of("sparse", kWorse);
  for (std::size_t i = 0; i < kBest.size(); ++i) {
    before.sources[0].documents[i].kl = 2;
    after.sources[0].documents[i].kl = 3;
  }
  const auto change = change_of_f(before, after, 2, 0.5);
  EXPECT_NEAR(change.nll, 0.82 / 8, 1e-12);
  EXPECT_NEAR(change.kl, 0.1, 1e-12) << "one nat in ten tokens of each document";
  EXPECT_NEAR(change.objective, 2 * 0.82 / 8 + 0.05, 1e-12);
  ASSERT_TRUE(change.interval);
  EXPECT_GT(change.interval->low, 2 * 0.08 + 0.05) << "on every document by at least 0.08";
  EXPECT_LT(change.interval->high, 2 * 0.13 + 0.05);
}

TEST(Change, NamesTheWorstOfItsSources) {
  auto before = model_of("pruned", kBest), after = model_of("sparse", kBest);
  for (auto* model : {&before, &after}) model->sources.push_back(model_of("", kMixed).sources[0]);
  before.sources[1].name = after.sources[1].name = "notes";
  after.sources[1].documents[0].nll += 6;
  const auto json = to_json(change_of_f(before, after, 1, 1));
  EXPECT_EQ(json.at("before"), "pruned");
  EXPECT_EQ(json.at("model"), "sparse");
  EXPECT_EQ(json.at("worst_domain"), "notes");
  EXPECT_EQ(json.at("domains").at("manuals"), 0);
  EXPECT_NEAR(json.at("domains").at("notes").get<double>(), 0.075, 1e-12) << "six nats over eighty tokens";
  EXPECT_NEAR(json.at("objective").get<double>(), 0.0375, 1e-12);
}

TEST(Selection, TakesTheLeastLossAlsoOfTheTied) {
  const std::vector models{model_of("mixed", kMixed), model_of("best", kBest), model_of("again", kBest)};
  const auto found = standings(models);
  EXPECT_TRUE(found[0].tied);
  EXPECT_EQ(chosen(found), 1U) << "of equals the first";
}

TEST(Selection, CallsNothingTiedByFewDocuments) {
  const std::vector<double> best(kBest.begin(), kBest.end() - 1), mixed(kMixed.begin(), kMixed.end() - 1);
  const std::vector models{model_of("mixed", mixed), model_of("best", best)};
  const auto found = standings(models);
  EXPECT_FALSE(found[0].interval) << "seven documents";
  EXPECT_FALSE(found[0].tied);
  EXPECT_TRUE(found[1].tied) << "with itself";
  EXPECT_EQ(chosen(found), 1U);
}

TEST(Selection, RefusesWhatDoesNotCompare) {
  auto other = model_of("other", kMixed);
  other.sources[0].documents[2].document.hash = 1;
  const std::vector models{model_of("best", kBest), other};
  EXPECT_SAYS(test::message_of<base::ModelError>([&] { standings(models); }), "other tokens of 'manuals'");
  other = model_of("other", kMixed);
  other.sources[0].documents[1].targets = 9;
  const std::vector longer{model_of("best", kBest), other};
  EXPECT_SAYS(test::message_of<base::ModelError>([&] { standings(longer); }), "same tokenizer");
}

}  // namespace
}  // namespace retort::eval
