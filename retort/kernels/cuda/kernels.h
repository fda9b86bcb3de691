#pragma once
// Kernels that this project brings for NVIDIA's accelerators, as the host launches them.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include "retort/base/error.h"

namespace retort::kernels::cuda {

/// Whether kernels can be made for this device: a CUDA device, and a compiler beside libtorch that knows it.
/// RETORT_KERNELS=none says that none are wanted.
bool has_kernels(c10::Device device);

/// One sentence for people: which compiler there is, or why there are no kernels.
std::string describe_kernels(c10::Device device);

struct Grid {
  std::int64_t blocks = 1;
  int threads = 256;
};

/// Queues the kernel `name` for elements of `type` behind the work of x's device that the calling thread gave
/// it before; `arguments` points to each one's value.  Its first launch compiles it, which takes some tenths
/// of a second.  Throws InternalError where the device refuses.
void launch(const std::string& name, at::ScalarType type, Grid grid, const at::Tensor& x, void** arguments);

template <typename... Arguments>
void run(const std::string& name, at::ScalarType type, Grid grid, const at::Tensor& x, Arguments... values) {
  void* arguments[] = {&values...};
  launch(name, type, grid, x, arguments);
}

/// A grid for work that its threads share however many they are; no more blocks than keep a device busy.
Grid shared_grid(std::int64_t items);

/// Elements that a thread takes at a time from rows of `columns` elements: as many as 16 bytes hold where
/// every row of every tensor begins at a multiple of 16 bytes, else 1.
template <typename... Tensors>
std::int64_t pack_width(const at::Tensor& x, const Tensors&... others);

/// The name of a template's kernel with these arguments: numbers, or types by their names.
template <typename... Arguments>
std::string instance(const char* name, const Arguments&... arguments) {
  std::string list;
  ((list += base::join(list.empty() ? "" : ", ", arguments)), ...);
  return base::join(name, "<", list, ">");
}

bool begins_rows_aligned(const at::Tensor& x);

template <typename... Tensors>
std::int64_t pack_width(const at::Tensor& x, const Tensors&... others) {
  const bool aligned = begins_rows_aligned(x) && (begins_rows_aligned(others) && ...);
  return aligned ? 16 / x.element_size() : 1;
}

}  // namespace retort::kernels::cuda
