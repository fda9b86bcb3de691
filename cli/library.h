#pragma once
// libretort.so, which brings libtorch along.

#include "retort/pipeline/library.h"

namespace retort::cli {

/// Loads the library beside the program, once; call it only when something is going to be computed.  Sets
/// OMP_WAIT_POLICY=passive unless the environment has a policy.  Throws EnvironmentError when it cannot be
/// loaded.
const pipeline::Library& library();

}  // namespace retort::cli
