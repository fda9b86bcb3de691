#pragma once
// Element types and devices by name, and which compute type suits a machine.

#include <ATen/core/Tensor.h>

#include <string>

#include "retort/io/dtype.h"

namespace retort::model {

at::ScalarType scalar_type(io::Dtype dtype);
io::Dtype io_dtype(at::ScalarType type);

/// "cpu", "cuda" or "cuda:1"; throws EnvironmentError when libtorch has no such device.
at::Device parse_device(const std::string& name);

/// "fp32", "bf16", "fp64", or "auto": bf16 where it has matrix units (AMX, a GPU), fp32 elsewhere.
/// Throws UsageError for another name.  Source: docs/decisions on the compute dtype.
at::ScalarType parse_compute_dtype(const std::string& name, const at::Device& device);
/// The same for scoring and generation, where `auto` is fp32 on a CPU: scores of different machines can be
/// compared.
at::ScalarType parse_scoring_dtype(const std::string& name, const at::Device& device);
/// "fp32", "bf16", "fp64"
std::string dtype_name(at::ScalarType type);

}  // namespace retort::model
