#pragma once
// How closely two computations of one thing agree, in one place.
//
// A difference is measured against the largest element of what is expected: rounding in a sum goes by its
// largest terms.

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace retort::test {

/// Largest difference allowed for results that are stored in `type`.
inline double tolerance(at::ScalarType type) {
  switch (type) {
    case at::kDouble:
      return 1e-11;  // sums of at most some thousand terms, each with an error of 1e-16, in another order
    case at::kFloat:
      return 2e-5;  // the same with 6e-8; e^x itself is good to 2 ulp
    case at::kBFloat16:
      return 1.6e-2;  // 2^-6: three or four roundings to 8 bits (2^-9 each) on the way, with a margin of two
    default:
      ADD_FAILURE() << "no tolerance for " << at::toString(type);
      return 0;
  }
}

/// Rotary tables and float-only constants limit what is computed in double but built on them.
inline constexpr double kThroughFloatTables = 1e-6;
/// Logits of a whole model, absolute: what a user may rely on in float32.
inline constexpr double kLogits = 1e-4;
/// Likelihood of a text in float32, absolute, for each of its tokens: logits of about 20 round by 1e-6.
inline constexpr double kLikelihoodOfToken = 1e-5;
/// Scores of a text against another program, relative.
inline constexpr double kScores = 1e-3;

/// Gradients of a whole model against transformers, of a tensor's largest element: sums of a hundred thousand
/// terms in float32, in another order.
inline constexpr double kGradients = 1e-4;
/// A key's bias has no gradient where positions are not told, and rounding leaves some.
inline constexpr double kNoGradient = 1e-8;
/// Root mean square error of logits, and of gradients, in bfloat16, of the error that transformers itself
/// makes there.  Most are at 1.0 to 1.2.  Gemma's are the largest, 1.42 and 1.46: its norms multiply by 1 +
/// w, which is rounded here once more than there.
inline constexpr double kTimesTheirBfloat16Error = 1.5, kTimesTheirBfloat16GradientError = 1.7;

/// One rounding to bfloat16, relative: half of the last of 8 bits.
inline constexpr double kOneBfloat16Rounding = 1.0 / 256;
/// All of a gradient in bfloat16, of its length: each product on the way rounds, and errors of blocks add up.
/// Found are 1 % at the head to 6 % at the embedding, whose gradient has passed three blocks of large
/// weights.
inline constexpr double kBfloat16Gradient = 0.1;

/// What a few steps of AdamW change, of a tensor's largest change.  float32: each of four steps rounds a
/// weight near 1 by up to 6e-8, of a change of 2e-3.  bfloat16: Adam divides by a gradient's own size, so
/// small gradients count with the relative error of their few digits.
inline double update_tolerance(at::ScalarType type) {
  return type == at::kFloat ? 2e-4 : 0.15;
}

inline void expect_close(const at::Tensor& actual, const at::Tensor& expected, double allowed,
                         const char* what = "") {
  ASSERT_TRUE(actual.defined() && expected.defined()) << what;
  ASSERT_EQ(actual.sizes(), expected.sizes()) << what;
  if (actual.numel() == 0) return;
  const auto a = actual.detach().to(at::kDouble), e = expected.detach().to(at::kDouble);
  ASSERT_TRUE(a.isfinite().all().item<bool>()) << what << ": not finite";
  const double scale = e.abs().max().item<double>(), difference = (a - e).abs().max().item<double>();
  EXPECT_LE(difference, allowed * std::max(scale, 1e-300)) << what << ": largest element " << scale;
}

inline void expect_identical(const at::Tensor& actual, const at::Tensor& expected, const char* what = "") {
  EXPECT_TRUE(at::equal(actual, expected)) << what << ": the bits differ";
}

}  // namespace retort::test
