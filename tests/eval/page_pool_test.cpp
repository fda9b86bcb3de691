// Pages that are lent, shared, kept for later texts, and given up for room.
#include "retort/eval/page_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "retort/base/error.h"
#include "retort/ops/paged_attention.h"

namespace retort::eval {
namespace {

using Ids = std::vector<std::int32_t>;
constexpr std::int64_t kPage = ops::kPageTokens;

Ids ids_from(std::int32_t first, std::int64_t count) {
  Ids ids(static_cast<std::size_t>(count));
  std::iota(ids.begin(), ids.end(), first);
  return ids;
}

TEST(PagePool, LendsWhatIsFreeAndHoldsOnlyAWindow) {
  PagePool pool(4, 40);
  std::vector<std::int32_t> pages;
  pool.grow(pages, 0, 3 * kPage);
  EXPECT_EQ(pages.size(), 3U);
  EXPECT_EQ(pool.free_pages(), 1);
  pool.grow(pages, 3 * kPage, 3 * kPage + 1);  // sees 39 tokens before it
  EXPECT_EQ(pages[0], -1);
  EXPECT_EQ(pool.free_pages(), 1);
  pool.release(pages);
  EXPECT_EQ(pool.free_pages(), 4);
}

TEST(PagePool, SharesTheWholePagesOfABeginning) {
  PagePool pool(6, 0);
  const auto ids = ids_from(0, 2 * kPage + 5);
  std::vector<std::int32_t> first;
  pool.grow(first, 0, std::ssize(ids));
  EXPECT_TRUE(pool.beginning_of(ids).empty());
  pool.remember(first, ids);
  auto shared = pool.beginning_of(ids);
  EXPECT_EQ(shared, Ids(first.begin(), first.begin() + 2));
  auto other = ids;
  other[kPage] = -7;  // the second page is another one
  EXPECT_EQ(pool.beginning_of(other), Ids(first.begin(), first.begin() + 1));
  other[0] = -7;
  EXPECT_TRUE(pool.beginning_of(other).empty());
  pool.share(shared);
  pool.release(first);
  EXPECT_EQ(pool.free_pages(), 4);  // two are held by the second text
  pool.release(shared);
  EXPECT_EQ(pool.free_pages(), 6);
  EXPECT_EQ(pool.beginning_of(ids).size(), 2U);  // and kept
}

// The same tokens behind another beginning are another page.
TEST(PagePool, KnowsAPageByAllThatIsBeforeIt) {
  PagePool pool(8, 0);
  auto one = ids_from(0, 2 * kPage), two = ids_from(500, 2 * kPage);
  std::copy(one.begin() + kPage, one.end(), two.begin() + kPage);
  std::vector<std::int32_t> pages_of_one, pages_of_two;
  pool.grow(pages_of_one, 0, 2 * kPage);
  pool.remember(pages_of_one, one);
  EXPECT_TRUE(pool.beginning_of(two).empty());
  pool.grow(pages_of_two, 0, 2 * kPage);
  pool.remember(pages_of_two, two);
  EXPECT_EQ(pool.beginning_of(two), pages_of_two);
  EXPECT_EQ(pool.beginning_of(one), pages_of_one);
}

TEST(PagePool, GivesUpTheOldestOfWhatIsKept) {
  PagePool pool(4, 0);
  const auto one = ids_from(0, 2 * kPage), two = ids_from(500, 2 * kPage);
  for (const auto& ids : {one, two}) {
    std::vector<std::int32_t> pages;
    pool.grow(pages, 0, std::ssize(ids));
    pool.remember(pages, ids);
    pool.release(pages);
  }
  std::vector<std::int32_t> pages;
  pool.grow(pages, 0, kPage);
  EXPECT_EQ(pool.beginning_of(one).size(), 1U);  // its last page went
  EXPECT_EQ(pool.beginning_of(two).size(), 2U);
  pool.grow(pages, kPage, 4 * kPage);
  EXPECT_TRUE(pool.beginning_of(one).empty());
  EXPECT_TRUE(pool.beginning_of(two).empty());
  EXPECT_EQ(pool.free_pages(), 0);
  EXPECT_THROW(pool.grow(pages, 4 * kPage, 5 * kPage), std::exception);
}

}  // namespace
}  // namespace retort::eval
