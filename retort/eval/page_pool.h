#pragma once
// Pages of a common memory, lent to texts that grow.

#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <utility>
#include <vector>

namespace retort::eval {

/// Pages that texts hold, of attentions that look back equally far.
class PagePool {
 public:
  /// `window`: tokens that an attention sees, 0: all.
  PagePool(std::int64_t pages, std::int64_t window);

  /// Pages that a text of up to `tokens` tokens holds at once, when it grows by at most `step` tokens a pass
  /// behind a prompt; of a prompt longer than the window only the end is kept.
  static std::int64_t pages_of(std::int64_t tokens, std::int64_t window, std::int64_t step);

  std::int64_t window() const { return window_; }
  /// Pages that no text holds.
  std::int64_t free_pages() const { return static_cast<std::int64_t>(free_.size() + kept_.size()); }
  /// Lends pages for the first `tokens` tokens, and takes back those that no token from `first` on sees.
  /// Places that are not held are -1.  There are enough: callers count first.
  void grow(std::vector<std::int32_t>& pages, std::int64_t first, std::int64_t tokens);
  /// Takes all back.  Those that are remembered are kept as long as no text needs their room.
  void release(std::vector<std::int32_t>& pages);

  /// Of a text whose tokens `ids` are read: its full pages may be shared.  Without a window.
  void remember(std::span<const std::int32_t> pages, std::span<const std::int32_t> ids);
  /// The remembered pages with which `ids` begins.  They are not lent yet.
  std::vector<std::int32_t> beginning_of(std::span<const std::int32_t> ids) const;
  /// Lends pages of beginning_of().
  void share(std::span<const std::int32_t> pages);

 private:
  // A page's tokens behind those of another page: one that was remembered as the so-many-th, 0: none.
  using Beginning = std::pair<std::uint64_t, std::vector<std::int32_t>>;
  struct Page {
    std::int32_t holders = 0;
    std::uint64_t number = 0;  ///< of those remembered, 0: it is not
    Beginning beginning = {};
  };

  std::int32_t taken();
  void give_back(std::int32_t page);

  std::int64_t window_;
  std::vector<Page> pages_;
  std::vector<std::int32_t> free_;
  std::deque<std::int32_t> kept_;  ///< held by no text and remembered, the oldest first
  std::map<Beginning, std::int32_t> remembered_;
  std::uint64_t last_number_ = 0;
};

}  // namespace retort::eval
