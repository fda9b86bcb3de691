#pragma once
// Pages of a common memory, lent to texts that grow.

#include <cstdint>
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
  std::int64_t free_pages() const { return static_cast<std::int64_t>(free_.size()); }
  /// Lends pages for the first `tokens` tokens, and takes back those that no token from `first` on sees.
  /// Places that are not held are -1.  There are enough: callers count first.
  void grow(std::vector<std::int32_t>& pages, std::int64_t first, std::int64_t tokens);
  /// Takes all back.
  void release(std::vector<std::int32_t>& pages);

 private:
  std::int64_t window_;
  std::vector<std::int32_t> free_;
};

}  // namespace retort::eval
