#pragma once
// Weights that lie in the memory of the machine while an accelerator computes with them.

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <optional>

namespace retort::model {

/// Copies of units on an accelerator: that of the head, which every batch needs, and of the unit used last.
class Offload {
 public:
  Offload(at::Device device, std::size_t head_unit) : device_(device), head_unit_(head_unit) {}

  at::Device device() const { return device_; }
  std::size_t head_unit() const { return head_unit_; }
  /// Of the values of a unit, which are not read where there is one.
  at::Tensor copy_of(std::size_t unit, const at::Tensor& values);
  /// The values of blocks are others now.
  void forget_blocks() { last_unit_.reset(), last_.reset(); }

 private:
  at::Device device_;
  std::size_t head_unit_;
  at::Tensor head_, last_;
  std::optional<std::size_t> last_unit_;
};

}  // namespace retort::model
