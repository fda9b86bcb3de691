#include "cli/wait_policy.h"

#include <unistd.h>

#include <cstdlib>
#include <system_error>

#include "retort/base/files.h"

namespace retort::cli {

// libgomp lets threads spin at the end of a parallel loop.  As soon as anything else runs on the machine, a
// spinning thread holds the processor that the thread it waits for needs: steps took three to ten times as
// long.  libgomp reads the variable while it is loaded, before main(), so setting it takes effect only in a
// new start.
void let_threads_sleep(const std::vector<std::string>& command_line) {
  if (std::getenv("OMP_WAIT_POLICY") || std::getenv("GOMP_SPINCOUNT")) return;
  if (::setenv("OMP_WAIT_POLICY", "passive", 0) != 0) return;
  std::error_code error;
  const base::Path program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return;
  std::vector<char*> arguments;
  for (const std::string& argument : command_line) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  ::execv(program.c_str(), arguments.data());
}

}  // namespace retort::cli
