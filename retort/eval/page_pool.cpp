#include "retort/eval/page_pool.h"

#include <algorithm>
#include <numeric>

#include "retort/base/error.h"
#include "retort/base/index.h"
#include "retort/ops/paged_attention.h"

namespace retort::eval {
namespace {

using base::to_size;
using ops::kPageTokens;

std::int64_t pages_up_to(std::int64_t tokens) {
  return (tokens + kPageTokens - 1) / kPageTokens;
}

// The first page of which a token sees something.
std::int64_t first_page(std::int64_t token, std::int64_t window) {
  return window > 0 && token >= window ? (token + 1 - window) / kPageTokens : 0;
}

}  // namespace

PagePool::PagePool(std::int64_t pages, std::int64_t window) : window_(window), free_(to_size(pages)) {
  std::iota(free_.rbegin(), free_.rend(), 0);  // the first is lent first
}

std::int64_t PagePool::pages_of(std::int64_t tokens, std::int64_t window, std::int64_t step) {
  const auto all = pages_up_to(tokens);
  return window > 0 ? std::min(all, pages_up_to(window + step) + 1) : all;
}

void PagePool::grow(std::vector<std::int32_t>& pages, std::int64_t from, std::int64_t tokens) {
  const auto first = first_page(from, window_), end = pages_up_to(tokens);
  for (std::int64_t page = 0; page < std::min(first, std::ssize(pages)); ++page)
    if (auto& held = pages[to_size(page)]; held >= 0) {
      free_.push_back(held);
      held = -1;
    }
  pages.reserve(to_size(end));
  while (std::ssize(pages) < end) {
    if (std::ssize(pages) < first) {
      pages.push_back(-1);
      continue;
    }
    base::ensure(!free_.empty(), "a text that was let in has room for its tokens");
    pages.push_back(free_.back());
    free_.pop_back();
  }
}

void PagePool::release(std::vector<std::int32_t>& pages) {
  for (const auto page : pages)
    if (page >= 0) free_.push_back(page);
  pages.clear();
}

}  // namespace retort::eval
