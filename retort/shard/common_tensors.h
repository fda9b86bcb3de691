#pragma once
// Memory that the ranks of a group have in common, cut into tensors.

#include <ATen/ATen.h>

#include <memory>

#include "retort/base/error.h"
#include "retort/comm/group.h"

namespace retort::shard {

/// Holds the block for as long as any of its tensors.
class CommonTensors {
 public:
  CommonTensors(std::shared_ptr<comm::CommonBlock> block, at::ScalarType type)
      : block_(std::move(block)), type_(type) {}
  at::Tensor take(std::int64_t elements) {
    const auto bytes = elements * static_cast<std::int64_t>(at::elementSize(type_));
    base::ensure(taken_ + bytes <= std::ssize(block_->bytes()), "common memory holds what it was made for");
    auto* data = block_->bytes().data() + taken_;
    taken_ += bytes;
    return at::from_blob(
        data, {elements}, [block = block_](void*) {}, at::TensorOptions().dtype(type_));
  }

 private:
  std::shared_ptr<comm::CommonBlock> block_;
  at::ScalarType type_;
  std::int64_t taken_ = 0;
};

}  // namespace retort::shard
