#pragma once
// Weights that lie in the memory of the machine while an accelerator computes with them.

#include <ATen/core/Tensor.h>

#include <cstddef>

namespace retort::model {

/// Copies of units on an accelerator: that of the head, which every batch needs, and of the unit used last.
/// Not for several threads.
class Offload {
 public:
  Offload(at::Device device, std::size_t head_unit) : device_(device), head_unit_(head_unit) {}

  at::Device device() const { return device_; }
  /// Of the values of a unit, which are not read where there is one of the same memory.
  at::Tensor copy_of(std::size_t unit, const at::Tensor& values);
  /// The values of blocks are others now.
  void forget_blocks() { last_ = {}; }
  void forget_all() { head_ = last_ = {}; }

 private:
  struct Copy {
    at::Tensor values;
    const void* of = nullptr;  ///< where the values lie that it is a copy of
  };

  at::Device device_;
  std::size_t head_unit_;
  Copy head_, last_;
};

}  // namespace retort::model
