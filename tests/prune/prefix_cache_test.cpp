#include "retort/prune/prefix_cache.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace retort::prune {
namespace {

TEST(PrefixCache, ForgetsWhatWasUsedLongestAgo) {
  PrefixCache cache(3 * 8);
  for (const char* prefix : {"a", "b", "c"}) cache.keep({0, prefix}, at::full({1}, 1.0, at::kDouble));
  EXPECT_TRUE(cache.find({0, "a"}).defined());
  cache.keep({0, "d"}, at::full({1}, 4.0, at::kDouble));
  EXPECT_FALSE(cache.find({0, "b"}).defined());
  EXPECT_TRUE(cache.find({0, "a"}).defined());
  EXPECT_TRUE(cache.find({0, "c"}).defined());
  EXPECT_EQ(cache.find({0, "d"}).item<double>(), 4);
  EXPECT_FALSE(cache.find({1, "d"}).defined()) << "of another batch";
}

TEST(PrefixCache, DoesNotTakeWhatDoesNotFit) {
  PrefixCache cache(8);
  cache.keep({0, "a"}, at::full({1}, 1.0, at::kDouble));
  cache.keep({0, "b"}, at::full({2}, 1.0, at::kDouble));
  EXPECT_TRUE(cache.find({0, "a"}).defined());
  EXPECT_FALSE(cache.find({0, "b"}).defined());
}

}  // namespace
}  // namespace retort::prune
