#pragma once
// Numbers for operations whose time is taken.

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace retort::bench {

/// `count` numbers between -1 and 1 with irregular bits.  The bits that a processor multiplies decide how
/// much power it takes, and so its clock: equal numbers would make a product look faster than it is.
at::Tensor irregular(std::int64_t count, const at::TensorOptions& options);

}  // namespace retort::bench
