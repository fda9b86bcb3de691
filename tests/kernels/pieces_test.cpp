// Rows in pieces, of which compositions make their temporaries.
#include "retort/kernels/device/pieces.h"

#include <gtest/gtest.h>

namespace retort {
namespace {

TEST(Pieces, CoverAllRowsOnceAndStaySmall) {
  for (const std::int64_t columns :
       {std::int64_t{1}, std::int64_t{1000}, 2 * kernels::device::kPieceElements})
    for (const std::int64_t rows : {std::int64_t{0}, std::int64_t{1}, std::int64_t{9000}}) {
      std::int64_t next = 0;
      kernels::device::for_each_piece(rows, columns, [&](std::int64_t begin, std::int64_t count) {
        EXPECT_EQ(begin, next);
        EXPECT_GE(count, 1);
        EXPECT_TRUE(count == 1 || count * columns <= kernels::device::kPieceElements) << count;
        next = begin + count;
      });
      EXPECT_EQ(next, rows);
    }
}

}  // namespace
}  // namespace retort
