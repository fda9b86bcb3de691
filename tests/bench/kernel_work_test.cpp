// Bytes and operations by formula, against numbers that were counted by hand.
#include "retort/bench/kernel_work.h"

#include <gtest/gtest.h>

namespace retort::bench {
namespace {

// 4 query heads and 2 key heads of 8 features.
const architecture::Attention kHeads{4, 2, 8};

TEST(KernelWork, OfElementwiseOperationsIsEachOperandOnce) {
  // 3 x 5: 15 in, 15 out, 5 weights, of 2 bytes; 3 statistics of 4 bytes.
  EXPECT_EQ(rms_norm_work(3, 5, 2).bytes, 2 * 35 + 12);
  // 15 each of gradient, x, residual and result, 5 weights; 3 statistics, 5 sums in and 5 out.
  EXPECT_EQ(rms_norm_backward_work(3, 5, 2).bytes, 2 * 65 + 4 * 13);
  // 3 tokens with 6 heads of 8 features in and out, of 2 bytes; sine and cosine of 4 angles, of 4 bytes.
  EXPECT_EQ(rotary_work(kHeads, 3, 2).bytes, 3 * (2 * 2 * 48 + 2 * 4 * 4));
  EXPECT_EQ(swiglu_work(3, 7, 4).bytes, 4 * (2 * 21 + 21));
  EXPECT_EQ(swiglu_backward_work(3, 7, 4).bytes, 4 * (21 + 42 + 42 + 21));
  EXPECT_EQ(rms_norm_work(3, 5, 2).flops, 0);
  EXPECT_EQ(rms_norm_work(3, 5, 2).written, 2 * 15 + 12);
  EXPECT_EQ(rms_norm_backward_work(3, 5, 2).written, 2 * 15 + 4 * 5);
  EXPECT_EQ(rotary_work(kHeads, 3, 2).written, 3 * 2 * 48);
  EXPECT_EQ(swiglu_work(3, 7, 4).written, 4 * 21);
  EXPECT_EQ(swiglu_backward_work(3, 7, 4).written, 4 * (42 + 21));
}

TEST(KernelWork, OfAttentionIsProductsOverPairsOfTokens) {
  // Three tokens look at 1 + 2 + 3 tokens.  A pair takes 2 x 8 operations for its score and as many for its
  // value, in each of 4 heads.
  EXPECT_EQ(attention_work(kHeads, 3).flops, 4 * 6 * (16 + 16));
  EXPECT_EQ(attention_work(kHeads, 3).bytes, 0);
  // Scores again, their gradient, and the gradients of queries, keys and values.
  EXPECT_EQ(attention_backward_work(kHeads, 3).flops, 4 * 6 * 5 * 16);
  // 5 tokens of 2 heads of keys and as many of values; 4 heads of the query in, and out.
  EXPECT_EQ(paged_attention_work(kHeads, 5, 2).bytes, 2 * (2 * 5 * 2 * 8 + 2 * 4 * 8));
}

TEST(KernelWork, OfLossesAndOfTheOptimizerCountsWhatIsChangedTwice) {
  EXPECT_EQ(cross_entropy_work(2, 10, 4).bytes, 4 * (20 + 20));
  EXPECT_EQ(kl_divergence_work(2, 10, 4).bytes, 4 * (20 + 20 + 20));
  // Parameter and two moments in and out, one gradient: seven float32; a copy of two bytes.
  EXPECT_EQ(adamw_work(10, 4).bytes, 10 * 28);
  EXPECT_EQ(adamw_work(10, 2).bytes, 10 * 30);
  EXPECT_EQ(decode_product_work(6, 5, 2).bytes, 2 * (30 + 6 + 5));
  EXPECT_EQ(cross_entropy_work(2, 10, 4).written, 4 * 20);
  EXPECT_EQ(kl_divergence_work(2, 10, 4).written, 4 * 20);
  EXPECT_EQ(adamw_work(10, 2).written, 10 * 14);
  EXPECT_EQ(decode_product_work(6, 5, 2).written, 2 * 6);
  EXPECT_EQ(paged_attention_work(kHeads, 5, 2).written, 2 * 4 * 8);
}

}  // namespace
}  // namespace retort::bench
