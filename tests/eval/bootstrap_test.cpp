// Intervals against the share of made-up samples in which they hold the truth, and against the large-sample
// formula.
#include "retort/eval/bootstrap.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "retort/base/error.h"
#include "retort/base/random.h"

namespace retort::eval {
namespace {

using Groups = std::vector<std::vector<RatioTerm>>;

// What documents are like: lengths spread over two orders of magnitude, and nats per token of ...
enum class Kind {
  even,    // a normal distribution
  skewed,  // an exponential one
  length,  // a normal one that grows with the length
};
constexpr double kTruth[] = {0, 1, 0.4};

RatioTerm document(Kind kind, base::Random& random) {
  const double length = random.next_normal(), tokens = std::exp(6 + 0.8 * length);
  if (kind == Kind::skewed) return {-std::log(1 - random.next_double()) * tokens, tokens};
  return {((kind == Kind::length ? 0.5 * length : 0) + random.next_normal()) * tokens, tokens};
}

double coverage(Kind kind, std::size_t documents, std::size_t sources) {
  constexpr int kSamples = 400;
  base::Random random(documents, base::stream_of(base::join(static_cast<int>(kind), "/", sources)));
  int covered = 0;
  for (int sample = 0; sample < kSamples; ++sample) {
    Groups groups(sources);
    for (auto& group : groups)
      while (group.size() < documents) group.push_back(document(kind, random));
    const auto interval = bootstrap_interval(groups, {.resamples = 400});
    const double truth = kTruth[static_cast<int>(kind)];
    covered += interval && interval->low <= truth && truth <= interval->high;
  }
  return static_cast<double>(covered) / kSamples;
}

// A quantile of the resampled ratios themselves, without the error of each, holds it in 81 to 87 % of samples
// of eight documents.
TEST(Bootstrap, HoldsTheTruthNearlyAsOftenAsItSays) {
  for (const auto kind : {Kind::even, Kind::skewed, Kind::length})
    for (const std::size_t documents : {8, 12, 20, 40})
      for (const std::size_t sources : {1, 3}) {
        if (sources > 1 && documents != 8 && documents != 20) continue;
        const double share = coverage(kind, documents, sources);
        EXPECT_GE(share, 0.89) << static_cast<int>(kind) << ", " << documents << " x " << sources;
        EXPECT_LE(share, 0.99) << static_cast<int>(kind) << ", " << documents << " x " << sources;
      }
}

TEST(Bootstrap, MovesAndGrowsWithItsDocuments) {
  base::Random random(2, 0);
  Groups groups(2), other;
  for (auto& group : groups)
    while (group.size() < 9) group.push_back(document(Kind::even, random));
  other = groups;
  for (auto& group : other)
    for (auto& term : group) term.numerator = 3 * term.numerator + 2 * term.denominator;
  const auto a = bootstrap_interval(groups), b = bootstrap_interval(other),
             narrow = bootstrap_interval(groups, {.level = 0.5});
  ASSERT_TRUE(a && b && narrow);
  EXPECT_NEAR(b->low, 3 * a->low + 2, 1e-9);
  EXPECT_NEAR(b->high, 3 * a->high + 2, 1e-9);
  EXPECT_LT(a->low, narrow->low);
  EXPECT_GT(a->high, narrow->high);
}

TEST(Bootstrap, OfManyDocumentsIsTheLargeSampleIntervalOfARatio) {
  base::Random random(5, 0);
  Groups groups(2);
  std::vector<double> means, variances;
  for (auto& group : groups) {
    double above = 0, below = 0;
    for (int i = 0; i < 400; ++i) {
      const double tokens = 10 + std::floor(90 * random.next_double());
      group.push_back({tokens * (0.3 + 0.2 * random.next_normal()), tokens});
      above += group.back().numerator, below += tokens;
    }
    means.push_back(above / below);
    double squares = 0;  // the delta method: residuals of the numerators over the summed denominators
    for (const auto& term : group) squares += std::pow(term.numerator - means.back() * term.denominator, 2);
    variances.push_back(squares / (below * below));
  }
  const double mean = (means[0] + means[1]) / 2, error = std::sqrt(variances[0] + variances[1]) / 2;
  const auto interval = bootstrap_interval(groups, {.resamples = 20'000});
  ASSERT_TRUE(interval);
  EXPECT_NEAR(interval->low, mean - 1.96 * error, 0.1 * error);
  EXPECT_NEAR(interval->high, mean + 1.96 * error, 0.1 * error);
}

TEST(Bootstrap, IsTheSameForASeedAndMovesWithIt) {
  const Groups groups = {{{3, 10}, {-1, 4}, {7.5, 9}, {0.2, 1}, {2, 30}, {1, 2}, {4, 4}, {3, 5}}};
  const auto a = bootstrap_interval(groups), b = bootstrap_interval(groups),
             c = bootstrap_interval(groups, {.seed = 2});
  ASSERT_TRUE(a && b && c);
  EXPECT_EQ(a->low, b->low);
  EXPECT_EQ(a->high, b->high);
  EXPECT_NE(a->low, c->low);
}

double ratio_without(const std::vector<RatioTerm>& terms, std::size_t left_out) {
  RatioTerm sum;
  for (std::size_t i = 0; i < terms.size(); ++i) {
    if (i == left_out) continue;
    sum.numerator += terms[i].numerator, sum.denominator += terms[i].denominator;
  }
  return sum.numerator / sum.denominator;
}

// By the definition of the jackknife.
double error_of_ratio(const std::vector<RatioTerm>& terms) {
  const auto count = static_cast<double>(terms.size());
  double mean = 0, squares = 0;
  for (std::size_t i = 0; i < terms.size(); ++i) mean += ratio_without(terms, i) / count;
  for (std::size_t i = 0; i < terms.size(); ++i) squares += std::pow(ratio_without(terms, i) - mean, 2);
  return std::sqrt((count - 1) / count * squares);
}

// Of one resample alone, so that its t decides; one document has half of all tokens.
TEST(Bootstrap, ErrsByTheRatiosWithoutEachDocument) {
  const std::vector<RatioTerm> terms = {{30, 60}, {-1, 4}, {7.5, 9}, {0.2, 1},
                                        {2, 30},  {1, 2},  {4, 4},   {3, 10}};
  base::Random random(1, base::stream_of("bootstrap over documents"));
  std::vector<RatioTerm> drawn;
  while (drawn.size() < terms.size()) drawn.push_back(terms[random.next_below(terms.size())]);
  const double ratio = ratio_without(terms, terms.size()),
               away = std::abs(ratio_without(drawn, drawn.size()) - ratio),
               reach = away / error_of_ratio(drawn) * error_of_ratio(terms);
  const auto interval = bootstrap_interval(Groups{terms}, {.resamples = 1});
  ASSERT_TRUE(interval && reach > 0);
  EXPECT_NEAR(interval->high - ratio, reach, 1e-9 * reach);
}

TEST(Bootstrap, NeedsEightDocumentsWithTokensInEveryGroup) {
  std::vector<RatioTerm> seven{{1, 2}, {1, 3}, {2, 2}, {4, 5}, {3, 2}, {1, 1}, {6, 5}}, eight = seven;
  eight.push_back({2, 7});
  EXPECT_FALSE(bootstrap_interval(Groups{}));
  EXPECT_FALSE(bootstrap_interval(Groups{{}}));
  EXPECT_FALSE(bootstrap_interval(Groups{seven}));
  EXPECT_TRUE(bootstrap_interval(Groups{eight}));
  EXPECT_FALSE(bootstrap_interval(Groups{eight, seven}));
  seven.push_back({0, 0});
  EXPECT_FALSE(bootstrap_interval(Groups{seven})) << "a document without a token says nothing";
}

TEST(Bootstrap, SaysNothingWhereOneDocumentMakesAllTheDifference) {
  std::vector<RatioTerm> terms(8, {0, 10});
  NoInterval why{};
  terms[3].numerator = 1;
  EXPECT_FALSE(bootstrap_interval(Groups{terms}, {}, &why));
  EXPECT_EQ(base::word(why), "too few documents differ");
}

// Eight that say the same may be eight of those that a change does not hurt.
TEST(Bootstrap, SaysNothingOfDocumentsThatAllSayTheSame) {
  std::vector<RatioTerm> terms(8, {0, 10});
  NoInterval why{};
  EXPECT_FALSE(bootstrap_interval(Groups{terms}, {}, &why));
  EXPECT_EQ(base::word(why), "equal documents");
  for (std::size_t i = 0; i < terms.size(); ++i) terms[i] = {0.7 * static_cast<double>(i + 1), double(i + 1)};
  EXPECT_FALSE(bootstrap_interval(Groups{terms}, {}, &why)) << "whatever their lengths";
  EXPECT_EQ(base::word(why), "equal documents");
  terms.resize(7);
  EXPECT_FALSE(bootstrap_interval(Groups{terms}, {}, &why));
  EXPECT_EQ(base::word(why), "too few documents");
}

// Damage is never below nothing, and of a few documents it is large: the truth is mostly above what one sees.
TEST(Bootstrap, ReachesFartherToTheSideOfTheDocumentsThatDifferMost) {
  const auto share = [](std::size_t documents) {
    constexpr int kSamples = 400;
    base::Random random(documents, base::stream_of("squares of normal numbers"));
    int covered = 0;
    for (int sample = 0; sample < kSamples; ++sample) {
      Groups groups(1);
      while (groups[0].size() < documents) {
        const double normal = random.next_normal(), tokens = std::exp(6 + 0.8 * random.next_normal());
        groups[0].push_back({normal * normal * tokens, tokens});
      }
      const auto interval = bootstrap_interval(groups, {.resamples = 400});
      covered += interval && interval->low <= 1 && 1 <= interval->high;
    }
    return static_cast<double>(covered) / kSamples;
  };
  // The symmetric interval alone holds it in 84 to 88 % of the first.
  for (const std::size_t documents : {8, 12, 20}) EXPECT_GE(share(documents), 0.88) << documents;
}

TEST(Bootstrap, LeavesDocumentsWithoutTokensOut) {
  std::vector<RatioTerm> terms{{1, 2}, {1, 3}, {2, 2}, {4, 5}, {3, 2}, {1, 1}, {6, 5}, {2, 7}};
  const auto without = bootstrap_interval(Groups{terms});
  terms.insert(terms.begin() + 3, RatioTerm{});
  const auto with = bootstrap_interval(Groups{terms});
  ASSERT_TRUE(with && without);
  EXPECT_EQ(with->low, without->low);
  EXPECT_EQ(with->high, without->high);
}

}  // namespace
}  // namespace retort::eval
