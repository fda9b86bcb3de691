#pragma once
// Who started this process as one of several ranks, and the group that they make.

#include <memory>
#include <string>

#include "retort/base/words.h"
#include "retort/comm/group.h"

namespace retort::comm {

enum class Launcher {
  none,      ///< this process is alone
  own,       ///< retort run --ranks
  open_mpi,  ///< mpirun of Open MPI, or srun --mpi=pmix
  mpich,     ///< mpiexec of MPICH and its kin, or srun --mpi=pmi2
};

constexpr auto words_of(Launcher) {
  return base::words<Launcher::mpich>("none", "retort run --ranks", "Open MPI", "MPICH");
}

/// Why ranks of this MPI cannot run here, in a sentence; empty where they can.
std::string why_not_here(Launcher by);

/// As the environment says.  Throws UsageError for launchers whose ranks have no group here, with the command
/// to use instead.
Launcher launcher();

/// The group of all ranks that the launcher started.  For MPI it loads the module of that library, beside
/// the program.  Collective.  Throws EnvironmentError, UsageError.
std::unique_ptr<Group> world_group(LastWords last_words = nullptr);

}  // namespace retort::comm
