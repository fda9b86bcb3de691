#include "retort/eval/repetition.h"

#include <algorithm>
#include <set>
#include <string_view>

namespace retort::eval {
namespace {

constexpr std::size_t kLongestPeriod = 64, kLeastTimes = 3, kLeastLoop = 24;  // tokens, times, tokens

// Ids at the end that equal those `period` before, and the first period.
std::size_t tokens_of_period(std::span<const std::int32_t> ids, std::size_t period) {
  auto begin = ids.size();
  while (begin > period && ids[begin - 1] == ids[begin - 1 - period]) --begin;
  return ids.size() - begin + period;
}

}  // namespace

bool ends_in_loop(std::span<const std::int32_t> ids) {
  const auto longest = std::min(kLongestPeriod, ids.size() / kLeastTimes);
  for (std::size_t period = 1; period <= longest; ++period)
    if (tokens_of_period(ids, period) >= std::max(kLeastTimes * period, kLeastLoop)) return true;
  return false;
}

double repeated_share(std::span<const std::int32_t> ids, std::size_t n) {
  if (n == 0 || ids.size() < n) return 0;
  const auto all = ids.size() - n + 1;
  std::set<std::u32string> seen;
  for (std::size_t begin = 0; begin < all; ++begin)
    seen.emplace(ids.begin() + static_cast<std::ptrdiff_t>(begin),
                 ids.begin() + static_cast<std::ptrdiff_t>(begin + n));
  return 1 - static_cast<double>(seen.size()) / static_cast<double>(all);
}

}  // namespace retort::eval
