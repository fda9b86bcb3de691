#pragma once
// The kernels for NVIDIA's accelerators that the host launches, by their names.

#include <string>
#include <vector>

#include "retort/kernels/cuda/kernels.h"

namespace retort::test {

/// Those of one type of element, of which a thread takes 1 or `width` at a time.
inline std::vector<std::string> kernel_names(std::int64_t width) {
  using kernels::cuda::instance;
  std::vector<std::string> names;
  for (const std::int64_t of_thread : {std::int64_t{1}, width}) {
    for (const char* name : {"rms_norm", "square_sums", "relative_errors"})
      names.push_back(instance(name, of_thread));
    for (const char* gate : {"Silu", "Gelu"})
      for (const char* name : {"glu", "glu_backward"}) names.push_back(instance(name, of_thread, gate));
    for (const int packs : {1, 2, 4}) names.push_back(instance("rms_norm_backward", of_thread, packs));
    for (const int terms : {1, 2, 3}) names.push_back(instance("logit_losses", of_thread, terms));
  }
  for (const char* name : {"add_rows", "apply_rotary", "adamw", "sum_of_squares"})
    names.push_back(instance(name, 1));
  return names;
}

}  // namespace retort::test
