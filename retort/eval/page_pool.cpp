#include "retort/eval/page_pool.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "retort/base/error.h"
#include "retort/base/index.h"
#include "retort/ops/paged_attention.h"

namespace retort::eval {
namespace {

using base::to_size;
using ops::kPageTokens;
using ops::pages_up_to;

// The first page of which a token sees something.
std::int64_t first_page(std::int64_t token, std::int64_t window) {
  return window > 0 && token >= window ? (token + 1 - window) / kPageTokens : 0;
}

}  // namespace

PagePool::PagePool(std::int64_t pages, std::int64_t window)
    : window_(window), pages_(to_size(pages)), free_(to_size(pages)) {
  std::iota(free_.rbegin(), free_.rend(), 0);  // the first is lent first
}

std::int64_t PagePool::pages_of(std::int64_t tokens, std::int64_t window, std::int64_t step) {
  const auto all = pages_up_to(tokens);
  return window > 0 ? std::min(all, pages_up_to(window + step) + 1) : all;
}

// What is kept for later texts makes room, the oldest first.
std::int32_t PagePool::taken() {
  base::ensure(!free_.empty() || !kept_.empty(), "a text that was let in has room for its tokens");
  std::int32_t page = 0;
  if (!free_.empty()) {
    page = free_.back();
    free_.pop_back();
  } else {
    page = kept_.front();
    kept_.pop_front();
    remembered_.erase(pages_[to_size(page)].beginning);
  }
  pages_[to_size(page)] = {.holders = 1};
  return page;
}

void PagePool::give_back(std::int32_t page) {
  auto& held = pages_[to_size(page)];
  if (--held.holders > 0) return;
  if (held.number > 0)
    kept_.push_back(page);
  else
    free_.push_back(page);
}

void PagePool::grow(std::vector<std::int32_t>& pages, std::int64_t from, std::int64_t tokens) {
  const auto first = first_page(from, window_), end = pages_up_to(tokens);
  for (std::int64_t page = 0; page < std::min(first, std::ssize(pages)); ++page)
    if (auto& held = pages[to_size(page)]; held >= 0) give_back(std::exchange(held, -1));
  pages.reserve(to_size(end));
  while (std::ssize(pages) < end) pages.push_back(std::ssize(pages) < first ? -1 : taken());
}

// The last pages first: without those before them they are of no use.
void PagePool::release(std::vector<std::int32_t>& pages) {
  for (auto page = pages.rbegin(); page != pages.rend(); ++page)
    if (*page >= 0) give_back(*page);
  pages.clear();
}

void PagePool::remember(std::span<const std::int32_t> pages, std::span<const std::int32_t> ids) {
  std::uint64_t before = 0;
  for (std::size_t i = 0; (i + 1) * kPageTokens <= ids.size(); ++i) {
    const auto tokens = ids.subspan(i * kPageTokens, kPageTokens);
    auto& page = pages_[to_size(pages[i])];
    if (page.number == 0) {
      Beginning beginning{before, {tokens.begin(), tokens.end()}};
      if (!remembered_.emplace(beginning, pages[i]).second) return;  // another text was read beside it
      page.number = ++last_number_;
      page.beginning = std::move(beginning);
    }
    before = page.number;
  }
}

std::vector<std::int32_t> PagePool::beginning_of(std::span<const std::int32_t> ids) const {
  std::vector<std::int32_t> pages;
  std::uint64_t before = 0;
  for (std::size_t i = 0; (i + 1) * kPageTokens <= ids.size(); ++i) {
    const auto tokens = ids.subspan(i * kPageTokens, kPageTokens);
    const auto found = remembered_.find({before, {tokens.begin(), tokens.end()}});
    if (found == remembered_.end()) break;
    pages.push_back(found->second);
    before = pages_[to_size(found->second)].number;
  }
  return pages;
}

void PagePool::share(std::span<const std::int32_t> pages) {
  for (const auto page : pages)
    if (pages_[to_size(page)].holders++ == 0) std::erase(kept_, page);
}

}  // namespace retort::eval
