// Intervals against resamples that are counted one by one, and against the large-sample formula.
#include "retort/eval/bootstrap.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "retort/base/random.h"

namespace retort::eval {
namespace {

using Groups = std::vector<std::vector<RatioTerm>>;

double ratio(const std::vector<RatioTerm>& terms, const std::vector<std::size_t>& drawn) {
  double above = 0, below = 0;
  for (const auto i : drawn) above += terms[i].numerator, below += terms[i].denominator;
  return above / below;
}

// The ratios of all n^n resamples of n documents, each as likely as the others, in order.
std::vector<double> all_resamples(const std::vector<RatioTerm>& terms) {
  std::vector<double> ratios;
  std::vector<std::size_t> drawn(terms.size(), 0);
  for (;;) {
    ratios.push_back(ratio(terms, drawn));
    std::size_t digit = 0;
    while (digit < drawn.size() && ++drawn[digit] == terms.size()) drawn[digit++] = 0;
    if (digit == drawn.size()) break;
  }
  std::sort(ratios.begin(), ratios.end());
  return ratios;
}

double share_up_to(const std::vector<double>& sorted, double value) {
  return static_cast<double>(std::upper_bound(sorted.begin(), sorted.end(), value) - sorted.begin()) /
         static_cast<double>(sorted.size());
}

// Many resamples are the same documents in another order: a quantile is a value at which the share jumps past
// it.
void expect_quantile(const std::vector<double>& sorted, double value, double share) {
  EXPECT_LE(share_up_to(sorted, value - 1e-9), share + 0.005);
  EXPECT_GE(share_up_to(sorted, value + 1e-9), share - 0.005);
}

TEST(Bootstrap, CoversTheShareOfAllResamplesThatItSays) {
  const std::vector<RatioTerm> terms = {{3, 10}, {-1, 4}, {7.5, 9}, {0.2, 1}, {2, 30}};  // 3,125 resamples
  const auto exact = all_resamples(terms);
  for (const double level : {0.5, 0.8, 0.95}) {
    const auto interval = bootstrap_interval(Groups{terms}, {.resamples = 100'000, .level = level});
    ASSERT_TRUE(interval);
    expect_quantile(exact, interval->low, (1 - level) / 2);
    expect_quantile(exact, interval->high, (1 + level) / 2);
  }
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
  const Groups groups = {{{3, 10}, {-1, 4}, {7.5, 9}, {0.2, 1}, {2, 30}, {1, 2}, {4, 4}}};
  const auto a = bootstrap_interval(groups), b = bootstrap_interval(groups),
             c = bootstrap_interval(groups, {.seed = 2});
  ASSERT_TRUE(a && b && c);
  EXPECT_EQ(a->low, b->low);
  EXPECT_EQ(a->high, b->high);
  EXPECT_NE(a->low, c->low);
}

TEST(Bootstrap, NeedsTwoDocumentsWithTokensInEveryGroup) {
  EXPECT_FALSE(bootstrap_interval(Groups{}));
  EXPECT_FALSE(bootstrap_interval(Groups{{}}));
  EXPECT_FALSE(bootstrap_interval(Groups{{{1, 2}}}));
  EXPECT_FALSE(bootstrap_interval(Groups{{{1, 2}, {0, 0}}}));
  EXPECT_FALSE(bootstrap_interval(Groups{{{1, 2}, {1, 3}}, {{1, 2}}}));
  EXPECT_TRUE(bootstrap_interval(Groups{{{1, 2}, {0, 0}, {1, 3}}}));
}

TEST(Bootstrap, LeavesDocumentsWithoutTokensOut) {
  const auto with = bootstrap_interval(Groups{{{1, 2}, {0, 0}, {1, 3}, {5, 4}}}),
             without = bootstrap_interval(Groups{{{1, 2}, {1, 3}, {5, 4}}});
  ASSERT_TRUE(with && without);
  EXPECT_EQ(with->low, without->low);
  EXPECT_EQ(with->high, without->high);
}

}  // namespace
}  // namespace retort::eval
