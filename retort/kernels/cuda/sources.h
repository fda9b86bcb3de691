#pragma once
// The text of the kernels, which travels in the program.

namespace retort::kernels::cuda {

extern const char* const kKernelSource;
extern const char* const kArgumentsSource;

}  // namespace retort::kernels::cuda
