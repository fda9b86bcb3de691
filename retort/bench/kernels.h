#pragma once
// How fast the operations between the products run here, on the shapes of a model.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "retort/architecture/config.h"
#include "retort/bench/in_turn.h"
#include "retort/bench/kernel_work.h"

namespace retort::bench {

struct KernelRate {
  std::string name;   ///< of the operation, as in retort/ops
  std::string shape;  ///< for people
  Work work;
  double seconds = 0;  ///< of the fastest run
};

/// Every operation of a training step and of decoding on the shapes of the model's widest block and its head,
/// with `tokens` tokens in one sequence.  Each run takes other operands than the one before, from as many
/// sets as no cache holds, so that memory is what limits an operation that computes little.
std::vector<KernelRate> measure_kernels(const architecture::Config& config, std::int64_t tokens,
                                        at::ScalarType dtype, at::Device device, const Effort& effort,
                                        const std::function<void(double share)>& done);

/// The most that measure_kernels allocates at a time.
std::int64_t kernel_bytes(const architecture::Config& config, std::int64_t tokens, std::int64_t item_bytes,
                          at::Device device);

}  // namespace retort::bench
