#pragma once
// Element types and devices by name.

#include <ATen/core/Tensor.h>

#include <string>

#include "retort/io/dtype.h"

namespace retort::model {

at::ScalarType scalar_type(io::Dtype dtype);
io::Dtype io_dtype(at::ScalarType type);

/// "cpu", "cuda", "cuda:1" or "privateuseone"; throws EnvironmentError when libtorch has no such device.
at::Device parse_device(const std::string& name);

/// "fp32", "bf16" or "fp64"; throws UsageError for another name.  Who begins a run decides what `auto` is.
at::ScalarType parse_compute_dtype(const std::string& name);
/// The same for scoring and generation, where `auto` is bf16 on a GPU and fp32 on a CPU: scores of different
/// machines can be compared.
at::ScalarType parse_scoring_dtype(const std::string& name, const at::Device& device);
/// "fp32", "bf16", "fp64"
std::string dtype_name(at::ScalarType type);

}  // namespace retort::model
