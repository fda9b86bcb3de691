#pragma once
// Numbers for operations whose time is taken.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace retort::bench {

/// `count` numbers between -1 and 1 with irregular bits.  The bits that a processor multiplies decide how
/// much power it takes, and so its clock: equal numbers would make a product look faster than it is.
at::Tensor irregular(std::int64_t count, const at::TensorOptions& options);

/// Copies the numbers of `piece` into all of `to`, again and again; both are contiguous.
void repeat(const at::Tensor& piece, const at::Tensor& to);

/// Ids of a made-up prompt, the same ones for the same `number`.
std::vector<std::int32_t> random_ids(std::int64_t count, std::int64_t vocab_size, std::uint64_t number);

}  // namespace retort::bench
