#pragma once
// Hidden states between blocks, by what came before them, so that a candidate which shares its first blocks
// with one that was seen before costs only the blocks after them.
//
// Shape legend: N tokens of a batch, D hidden.

#include <ATen/core/Tensor.h>

#include <compare>
#include <cstdint>
#include <list>
#include <map>
#include <string>
#include <utility>

namespace retort::prune {

/// Holds at most so many bytes; what was used longest ago goes first.  It never changes a result: the same
/// key always has the same bits.
class PrefixCache {
 public:
  struct Key {
    std::size_t batch = 0;
    std::string prefix;  ///< a hash of everything that the hidden state depends on besides the batch
    auto operator<=>(const Key&) const = default;
  };

  explicit PrefixCache(std::int64_t most_bytes) : most_bytes_(most_bytes) {}
  /// Undefined when it is not there.
  at::Tensor find(const Key& key);
  void keep(Key key, const at::Tensor& hidden_ND);

 private:
  using Entries = std::list<std::pair<Key, at::Tensor>>;  // the last used first
  std::int64_t most_bytes_, bytes_ = 0;
  Entries entries_;
  std::map<Key, Entries::iterator> places_;
};

}  // namespace retort::prune
