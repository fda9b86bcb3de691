#pragma once
// Linear layers whose weights are packed once and multiplied many times, a few rows or many.
//
// Shape legend: N rows, K inputs, M outputs.

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace retort::ops {

/// The weights of a linear layer in the order in which linear_apart() reads them.  On a CPU they are a copy;
/// elsewhere they are the tensor itself.
class PackedLinear {
 public:
  PackedLinear() = default;
  /// `w_MK`: dense, of any floating type.  Float32 that holds bfloat16 numbers only is packed as those: half
  /// of the bytes, the same values.
  explicit PackedLinear(const at::Tensor& w_MK);

  bool defined() const { return weights_.defined(); }
  std::int64_t inputs() const { return inputs_; }
  std::int64_t outputs() const { return outputs_; }
  /// Panels on a CPU, else [M, K].
  const at::Tensor& weights() const { return weights_; }

 private:
  at::Tensor weights_;
  std::int64_t inputs_ = 0, outputs_ = 0;
};

/// Bytes of the copy that PackedLinear makes of M x K weights on a CPU, at most.
std::int64_t packed_linear_bytes(std::int64_t outputs, std::int64_t inputs, std::int64_t item_bytes);

/// x w^T, [N, M] in the type of x.  On a CPU the bits of a row do not depend on the rows beside it: sums are
/// float32 (float64 of float64), one input after the other.  Elsewhere the device's library decides.
at::Tensor linear_apart(const at::Tensor& x_NK, const PackedLinear& weights);

}  // namespace retort::ops
