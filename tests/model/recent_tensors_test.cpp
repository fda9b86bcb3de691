#include "retort/model/recent_tensors.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <string>

namespace retort::model {
namespace {

using Cache = RecentTensors<std::pair<std::size_t, std::string>>;

TEST(RecentTensors, ForgetsWhatWasUsedLongestAgo) {
  Cache cache(3 * 8);
  for (const char* prefix : {"a", "b", "c"}) cache.keep({0, prefix}, at::full({1}, 1.0, at::kDouble));
  EXPECT_TRUE(cache.find({0, "a"}).has_value());
  cache.keep({0, "d"}, at::full({1}, 4.0, at::kDouble));
  EXPECT_FALSE(cache.find({0, "b"}).has_value());
  EXPECT_TRUE(cache.find({0, "a"}).has_value());
  EXPECT_TRUE(cache.find({0, "c"}).has_value());
  EXPECT_EQ(cache.find({0, "d"})->item<double>(), 4);
  EXPECT_FALSE(cache.find({1, "d"}).has_value()) << "of another batch";
}

TEST(RecentTensors, DoesNotTakeWhatDoesNotFit) {
  Cache cache(8);
  cache.keep({0, "a"}, at::full({1}, 1.0, at::kDouble));
  cache.keep({0, "b"}, at::full({2}, 1.0, at::kDouble));
  EXPECT_TRUE(cache.find({0, "a"}).has_value());
  EXPECT_FALSE(cache.find({0, "b"}).has_value());
}

}  // namespace
}  // namespace retort::model
