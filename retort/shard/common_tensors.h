#pragma once
// Memory that the ranks of a group have in common, cut into tensors.

#include <ATen/ATen.h>

#include <memory>

#include "retort/base/error.h"
#include "retort/comm/group.h"
#include "retort/ops/tensor_allocator.h"

namespace retort::shard {

/// Holds the block for as long as any of its tensors.  Each rank counts its share of it as tensors of its
/// own.
class CommonTensors {
 public:
  /// `ranks`: of the group that has the block.
  CommonTensors(std::shared_ptr<comm::CommonBlock> block, int ranks, at::ScalarType type)
      : share_(std::make_shared<Share>(block, ranks)), block_(std::move(block)), type_(type) {}
  at::Tensor take(std::int64_t elements) {
    const auto bytes = elements * static_cast<std::int64_t>(at::elementSize(type_));
    base::ensure(taken_ + bytes <= std::ssize(block_->bytes()), "common memory holds what it was made for");
    auto* data = block_->bytes().data() + taken_;
    taken_ += bytes;
    return at::from_blob(
        data, {elements}, [share = share_](void*) {}, at::TensorOptions().dtype(type_));
  }

 private:
  struct Share {
    Share(std::shared_ptr<comm::CommonBlock> of, int ranks)
        : block(std::move(of)), bytes(std::ssize(block->bytes()) / ranks) {
      ops::count_common_bytes(bytes);
    }
    ~Share() { ops::count_common_bytes(-bytes); }
    Share(const Share&) = delete;
    Share& operator=(const Share&) = delete;
    std::shared_ptr<comm::CommonBlock> block;
    std::int64_t bytes;
  };

  std::shared_ptr<Share> share_;
  std::shared_ptr<comm::CommonBlock> block_;
  at::ScalarType type_;
  std::int64_t taken_ = 0;
};

}  // namespace retort::shard
