#pragma once
// The products of matrices that a model is made of, and how fast each runs here.
//
// Shape legend: N tokens, M rows of a weight, K columns of it.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "retort/architecture/config.h"
#include "retort/base/words.h"
#include "retort/bench/in_turn.h"

namespace retort::bench {

/// A weight [rows, columns] that `tokens` rows of inputs are multiplied with.
struct Linear {
  std::int64_t rows = 0, columns = 0;
  bool operator==(const Linear&) const = default;
};

enum class Pass {
  forward,          ///< [N, K] times [K, M]
  input_gradient,   ///< [N, M] times [M, K]
  weight_gradient,  ///< [M, N] times [N, K], added to a float32 matrix
};
constexpr auto words_of(Pass) {
  return base::words<Pass::weight_gradient>("forward", "input gradient", "weight gradient");
}

inline constexpr Pass kPasses[] = {Pass::forward, Pass::input_gradient, Pass::weight_gradient};

/// Floating-point operations of one pass, 2 N M K.
double flops(const Linear& weight, std::int64_t tokens);

/// Operands of any of the given weights, in views of shared buffers.
class Operands {
 public:
  Operands(std::span<const Linear> weights, std::int64_t tokens, at::ScalarType dtype, at::Device device);

  /// One pass as a training step runs it.
  void run(const Linear& weight, Pass pass) const;

  /// What the constructor allocates, and the results of the largest product.
  static std::int64_t bytes(std::span<const Linear> weights, std::int64_t tokens, std::int64_t item_bytes);

 private:
  std::int64_t tokens_;
  at::Tensor weight_, weight_gradient_, input_, output_gradient_;
};

/// A product of a model: all blocks that have it in this shape.
struct NamedLinear {
  std::string name;  ///< "qkv", "o", "gate_up", "down" or "head"
  Linear weight;
  std::int64_t blocks = 0;  ///< that have it; 0 for the head
  std::int64_t tokens = 0;  ///< that go through it together: of the head fewer, as its logits are large
};

/// The different products of the model's blocks and its head.
std::vector<NamedLinear> products_of(const architecture::Config& config, std::int64_t tokens);

struct ProductRate {
  NamedLinear product;
  Pass pass = Pass::forward;
  double seconds = 0;  ///< of the fastest run

  double flops_per_second() const { return flops(product.weight, product.tokens) / seconds; }
};

/// All passes of one product, in turn.
std::vector<ProductRate> measure_product(const NamedLinear& product, at::ScalarType dtype, at::Device device,
                                         const Effort& effort);

}  // namespace retort::bench
