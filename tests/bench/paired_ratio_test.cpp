// The exact test of paired runs, against values that Python enumerated.
#include "retort/bench/paired_ratio.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace retort::bench {
namespace {

constexpr double kRounding = 1e-9;  // of logarithms and sums in another order, relative

const std::vector<double> kWhole = {100.0, 104.0, 99.0, 101.5, 98.0, 103.0, 97.5, 102.0, 100.5, 99.5};
const std::vector<double> kPruned = {103.0, 101.0, 104.5, 103.0, 97.0, 108.0, 99.0, 106.5, 101.0, 103.5};

// By itertools.product over signs in Python: p of all 2^10, and the ends by bisection for the shift of
// logarithms at which one tail passes 2.5 %.
TEST(PairedRatio, HasTheValuesThatEnumerationGives) {
  const auto found = paired_ratio(kPruned, kWhole);
  EXPECT_NEAR(found.ratio, 1.0211187062916594, kRounding);
  EXPECT_NEAR(found.p, 40.0 / 1024, kRounding);
  ASSERT_TRUE(found.interval);
  EXPECT_NEAR(found.interval->low, 1.0013257259750192, kRounding);
  EXPECT_NEAR(found.interval->high, 1.0406929562788902, kRounding);
}

TEST(PairedRatio, OfTheOtherOrderIsTheReciprocal) {
  const auto one = paired_ratio(kPruned, kWhole), other = paired_ratio(kWhole, kPruned);
  EXPECT_NEAR(one.ratio * other.ratio, 1, kRounding);
  EXPECT_EQ(one.p, other.p);
  EXPECT_NEAR(one.interval->low * other.interval->high, 1, kRounding);
  EXPECT_NEAR(one.interval->high * other.interval->low, 1, kRounding);
}

// All of ten pairs say the same sign: two of 1024 choices are as far.
TEST(PairedRatio, OfRunsThatNeverOverlapIsAsSureAsTheyCanSay) {
  std::vector<double> twice;
  for (const double value : kWhole) twice.push_back(2 * value);
  const auto found = paired_ratio(twice, kWhole);
  EXPECT_NEAR(found.ratio, 2, kRounding);
  EXPECT_DOUBLE_EQ(found.p, 2.0 / 1024);
  EXPECT_NEAR(found.interval->low, 2, kRounding);
}

TEST(PairedRatio, OfAModelToItselfIsOneAndSaysNothing) {
  const auto found = paired_ratio(kWhole, kWhole);
  EXPECT_EQ(found.ratio, 1);
  EXPECT_EQ(found.p, 1);
  EXPECT_EQ(found.interval->low, 1);
  EXPECT_EQ(found.interval->high, 1);
}

// With six pairs a tail of 2.5 % is first reached: 1 of 64.
TEST(PairedRatio, HasNoIntervalFromFewPairs) {
  const auto first = [](const std::vector<double>& values, std::size_t count) {
    return std::vector(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(count));
  };
  EXPECT_FALSE(paired_ratio(first(kPruned, kLeastPairs - 1), first(kWhole, kLeastPairs - 1)).interval);
  const auto six = paired_ratio(first(kPruned, kLeastPairs), first(kWhole, kLeastPairs));
  ASSERT_TRUE(six.interval);
  EXPECT_NEAR(six.interval->low, 97.0 / 98.0 < 101.0 / 104.0 ? 97.0 / 98.0 : 101.0 / 104.0, kRounding);
}

TEST(PairedRatio, TakesAsManyPairsAsItAllows) {
  std::vector<double> values, baseline;
  for (std::size_t pair = 0; pair < kMostPairs; ++pair) {
    values.push_back(10 + static_cast<double>(pair % 3));
    baseline.push_back(10);
  }
  const auto found = paired_ratio(values, baseline);
  EXPECT_GT(found.interval->low, 1);
  EXPECT_LT(found.p, 0.001);
}

}  // namespace
}  // namespace retort::bench
