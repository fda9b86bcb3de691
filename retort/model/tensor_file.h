#pragma once
// Tensors as entries of safetensors files.

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "retort/io/safetensors.h"

namespace retort::model {

/// The bytes of a contiguous tensor in host memory; none where it is undefined.
std::span<const std::byte> bytes_of(const at::Tensor& on_host);

/// A tensor in host memory with a copy of `bytes`, which may lie at any address of a mapped file.
at::Tensor tensor_of(io::Dtype dtype, std::span<const std::int64_t> shape, std::span<const std::byte> bytes);

/// A tensor to be written under `name`.  It is brought to the host when its turn comes, and has to keep its
/// values until then.
io::TensorToWrite to_write(std::string name, const at::Tensor& values);

/// Reads a tensor to host memory.  Throws ModelError when the file has none of this name.
at::Tensor read_tensor(const io::SafetensorsFile& file, const std::string& name);
/// Fills `target` from element `begin` on of the tensor `name`.  Throws ModelError unless the file has one of
/// this shape and of the type of `target`.
void read_part(const io::SafetensorsFile& file, const std::string& name, at::IntArrayRef shape,
               std::int64_t begin, at::Tensor target);

/// The same of a whole tensor that has the shape of `target`.
void read_tensor(const io::SafetensorsFile& file, const std::string& name, at::Tensor target);

}  // namespace retort::model
