#pragma once
// Where NCCL or RCCL is on this machine.

#include <memory>
#include <string>

#include "retort/comm/nccl/abi.h"

namespace retort::comm::nccl {

struct Library {
  Functions call;
  std::string file;
  int version = 0;  ///< 22703 is 2.27.3
};

/// The library that is in the process already, else that of the wheel beside libtorch, else the system's.
/// RETORT_NCCL names another file, or `none`.  Null: none is wanted.  Throws EnvironmentError where none is
/// found, or one that is too old.
std::shared_ptr<const Library> library();

}  // namespace retort::comm::nccl
