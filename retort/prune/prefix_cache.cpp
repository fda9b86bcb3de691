#include "retort/prune/prefix_cache.h"

#include <ATen/ATen.h>

namespace retort::prune {

at::Tensor PrefixCache::find(const Key& key) {
  const auto found = places_.find(key);
  if (found == places_.end()) return {};
  entries_.splice(entries_.begin(), entries_, found->second);
  return found->second->second;
}

void PrefixCache::keep(Key key, const at::Tensor& hidden_ND) {
  const auto bytes = static_cast<std::int64_t>(hidden_ND.nbytes());
  if (bytes > most_bytes_ || places_.contains(key)) return;
  entries_.emplace_front(key, hidden_ND);
  places_[std::move(key)] = entries_.begin();
  for (bytes_ += bytes; bytes_ > most_bytes_; entries_.pop_back()) {
    bytes_ -= static_cast<std::int64_t>(entries_.back().second.nbytes());
    places_.erase(entries_.back().first);
  }
}

}  // namespace retort::prune
