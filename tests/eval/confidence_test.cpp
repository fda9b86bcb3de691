// Expected calibration error of cases that are worked out by hand.
#include "retort/eval/confidence.h"

#include <gtest/gtest.h>

#include <limits>

namespace retort::eval {
namespace {

TEST(ConfidenceBins, ErrorIsTheMeanDistanceFromTheDiagonal) {
  ConfidenceBins bins;
  // Bin 13, (13/15, 14/15]: confidence 0.9 four times, right three times: |0.75 - 0.9| = 0.15.
  for (const bool right : {true, true, true, false}) bins.add(0.9, right);
  // Bin 3, (3/15, 4/15]: 0.25 and 0.21, right once: |0.5 - 0.23| = 0.27.
  bins.add(0.25, true);
  bins.add(0.21, false);
  EXPECT_EQ(bins.bins[13].targets, 4);
  EXPECT_EQ(bins.bins[13].correct, 3);
  EXPECT_EQ(bins.bins[3].targets, 2);
  EXPECT_NEAR(bins.expected_calibration_error(), (4 * 0.15 + 2 * 0.27) / 6, 1e-15);
  EXPECT_NEAR(bins.gap(), (4 * 0.15 - 2 * 0.27) / 6, 1e-15);  // overconfident up there, underconfident below
}

TEST(ConfidenceBins, TheGapIsPositiveForAnOverconfidentModel) {
  ConfidenceBins over, under;
  over.add(0.8, false);
  under.add(0.3, true);
  EXPECT_DOUBLE_EQ(over.gap(), 0.8);
  EXPECT_DOUBLE_EQ(under.gap(), 0.3 - 1);
}

TEST(ConfidenceBins, AreClosedAbove) {
  ConfidenceBins bins;
  for (std::size_t i = 0; i < ConfidenceBins::kBins; ++i) {
    const double middle = (static_cast<double>(i) + 0.5) / 15;
    bins.add(middle, true);
    EXPECT_EQ(bins.bins[i].targets, 1) << i;
  }
  bins.add(1.0, true);
  EXPECT_EQ(bins.bins[14].targets, 2);
  bins.add(0.2, false);  // = 3/15
  EXPECT_EQ(bins.bins[2].targets, 2);
  bins.add(0.0, false);
  bins.add(std::numeric_limits<double>::quiet_NaN(), false);
  EXPECT_EQ(bins.bins[0].targets, 3);
}

TEST(ConfidenceBins, AddedPartsAreTheWhole) {
  ConfidenceBins whole, parts[2];
  for (int i = 0; i < 100; ++i) {
    const double confidence = (i % 17) / 17.0;
    whole.add(confidence, i % 3 == 0);
    parts[i % 2].add(confidence, i % 3 == 0);
  }
  parts[0].add(parts[1]);
  EXPECT_NEAR(parts[0].expected_calibration_error(), whole.expected_calibration_error(), 1e-14);
  EXPECT_NEAR(parts[0].gap(), whole.gap(), 1e-14);
  EXPECT_EQ(ConfidenceBins().expected_calibration_error(), 0);
  EXPECT_EQ(ConfidenceBins().gap(), 0);
}

}  // namespace
}  // namespace retort::eval
