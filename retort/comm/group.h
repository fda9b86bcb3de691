#pragma once
// A group of ranks and what they do together.  Each backend has a folder of its own; the only one so far is
// single/, a group of one, for which every call is the identity.
//
// All calls are collective: every rank makes them in the same order with the same sizes.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace retort::comm {

class Group {
 public:
  virtual ~Group() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// Replaces each value by its sum over the ranks, added in the order of ranks.
  virtual void all_sum(std::span<double> values) = 0;
  /// Fills `all` (size() parts of equal length) with every rank's `own`; own may be its place in all.
  virtual void all_gather(std::span<const std::byte> own, std::span<std::byte> all) = 0;
  /// Adds `all` over the ranks in their order and leaves this rank's part in `own`, which may be its place in
  /// all.
  virtual void reduce_scatter(std::span<const float> all, std::span<float> own) = 0;
  virtual void barrier() = 0;
};

/// The group of one.
std::unique_ptr<Group> single_group();

}  // namespace retort::comm
