#pragma once
// NVIDIA's compiler of kernels, and what it makes.

#include <string>
#include <vector>

#include "retort/kernels/cuda/abi.h"

namespace retort::kernels::cuda {

struct Library {
  Functions call;
  int version = 0;         ///< 1300 is 13.0
  std::vector<int> archs;  ///< that it compiles for; 90 is compute capability 9.0
};

/// The compiler that came with this libtorch.  Null where it came without; `why_not` says then why.
const Library* library(std::string* why_not = nullptr);

/// Finds the compiler's functions in a library that was opened; returns the name of the first that is
/// missing.
std::string find_compiler(void* loaded, Functions& call);

struct Compiled {
  std::string code;  ///< of the machine
  std::string name;  ///< by which it is found there
};

/// One kernel for elements of one type.  Throws InternalError with what the compiler says.
Compiled compiled(const Functions& call, const std::string& name, bool bf16, int arch);

}  // namespace retort::kernels::cuda
