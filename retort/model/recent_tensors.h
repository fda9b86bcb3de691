#pragma once
// The tensors that were used last, as many as fit: a memory that saves time and never changes a result,
// because the same key always stands for the same bits.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <utility>

namespace retort::model {

template <typename Key>
class RecentTensors {
 public:
  explicit RecentTensors(std::int64_t most_bytes) : most_bytes_(most_bytes) {}

  /// Of what it holds.
  std::int64_t bytes() const { return bytes_; }

  /// Empty when it is not there; a tensor that was kept undefined is found undefined.
  std::optional<at::Tensor> find(const Key& key) {
    const auto found = places_.find(key);
    if (found == places_.end()) return {};
    entries_.splice(entries_.begin(), entries_, found->second);
    return found->second->second;
  }

  /// What was used longest ago goes; a tensor larger than the whole memory is not kept.
  void keep(const Key& key, const at::Tensor& tensor) {
    if (bytes_of(tensor) > most_bytes_ || places_.contains(key)) return;
    entries_.emplace_front(key, tensor);
    places_[key] = entries_.begin();
    for (bytes_ += bytes_of(tensor); bytes_ > most_bytes_; entries_.pop_back()) {
      bytes_ -= bytes_of(entries_.back().second);
      places_.erase(entries_.back().first);
    }
  }

 private:
  using Entries = std::list<std::pair<Key, at::Tensor>>;  // the last used first
  static std::int64_t bytes_of(const at::Tensor& tensor) {
    return tensor.defined() ? static_cast<std::int64_t>(tensor.nbytes()) : 0;
  }

  std::int64_t most_bytes_, bytes_ = 0;
  Entries entries_;
  std::map<Key, typename Entries::iterator> places_;
};

}  // namespace retort::model
