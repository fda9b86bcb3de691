// How attention is divided among threads.
#include "retort/kernels/cpu/attention_parts.h"

#include <gtest/gtest.h>

#include <vector>

namespace retort {
namespace {

TEST(AttentionParts, HaveEachTileOnceAndAboutTheSameWork) {
  for (const std::int64_t tiles : {1, 2, 7, 16, 33})
    for (const std::int64_t count : {1, 2, 3, 8}) {
      if (count > 1 && 2 * count > tiles) continue;
      std::vector<std::int64_t> owners(static_cast<std::size_t>(tiles), 0);
      for (std::int64_t number = 0; number < count; ++number)
        for (std::int64_t tile = 0; tile < tiles; ++tile)
          owners[static_cast<std::size_t>(tile)] += kernels::cpu::TilePart{number, count}.has(tile);
      EXPECT_EQ(owners, std::vector<std::int64_t>(static_cast<std::size_t>(tiles), 1))
          << tiles << " " << count;
    }
  EXPECT_EQ(kernels::cpu::best_parts(8, 32, 8, 1.4), 1);
  EXPECT_EQ(kernels::cpu::best_parts(8, 32, 12, 1.4), 1) << "dividing costs more than four idle threads";
  EXPECT_EQ(kernels::cpu::best_parts(8, 32, 64, 1.4), 8);
  EXPECT_EQ(kernels::cpu::best_parts(8, 4, 64, 1.4), 2) << "as many as there are tiles";
}

}  // namespace
}  // namespace retort
