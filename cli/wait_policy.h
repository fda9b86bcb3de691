#pragma once
// How threads of the tensor kernels wait for each other.

#include <string>
#include <vector>

namespace retort::cli {

/// Starts the program once more with OMP_WAIT_POLICY=passive unless the environment has a policy; call it
/// before anything is done that must not be done twice.  Returns when there is a policy, or when the program
/// cannot be started again.
void let_threads_sleep(const std::vector<std::string>& command_line);

}  // namespace retort::cli
