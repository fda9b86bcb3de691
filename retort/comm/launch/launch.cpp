#include "retort/comm/launch/launch.h"

#include <dlfcn.h>

#include <cstdlib>
#include <string>

#include "retort/base/error.h"
#include "retort/comm/mpi/module.h"
#include "retort/comm/shared/local_ranks.h"

namespace retort::comm {
namespace {

bool is_set(const char* variable) {
  const char* text = std::getenv(variable);
  return text && *text;
}

int number_of(const char* variable) {
  const char* text = std::getenv(variable);
  return text ? std::atoi(text) : 0;
}

// What the launcher says of the number of ranks; 0: nothing.  srun --mpi=pmix says it in Slurm's variable
// only, which below mpirun counts its daemons.
int launched_ranks(Launcher by) {
  const int ranks = number_of(by == Launcher::open_mpi ? "OMPI_COMM_WORLD_SIZE" : "PMI_SIZE");
  return ranks > 0 ? ranks : number_of("SLURM_STEP_NUM_TASKS");
}

struct Module {
  const char* file;
  const char* library;  // that it links
  const char* package;  // that has it
};

Module module_of(Launcher by) {
  return by == Launcher::open_mpi ? Module{"libretort_openmpi.so", "Open MPI", "libopenmpi3"}
                                  : Module{"libretort_mpich.so", "MPICH", "libmpich12"};
}

using World = decltype(&retort_mpi_world);

World loaded_world(Launcher by) {
  const auto module = module_of(by);
  void* loaded = ::dlopen(module.file, RTLD_NOW | RTLD_LOCAL);
  base::require<base::EnvironmentError>(
      loaded, "ranks of ", module.library, ": ", loaded ? "" : ::dlerror(), "; install ", module.package,
      " and a Retort that was built with it, or use retort run --ranks on one machine.");
  const auto release = reinterpret_cast<decltype(&retort_mpi_release)>(::dlsym(loaded, "retort_mpi_release"));
  const auto world = reinterpret_cast<World>(::dlsym(loaded, "retort_mpi_world"));
  base::require<base::EnvironmentError>(release && world && std::string(release()) == RETORT_RELEASE,
                                        module.file,
                                        " is of another release than the program; install Retort again.");
  return world;
}

}  // namespace

Launcher launcher() {
  if (is_local_rank()) return Launcher::own;
  if (is_set("OMPI_COMM_WORLD_SIZE") || is_set("PMIX_RANK")) return Launcher::open_mpi;
  if (is_set("PMI_RANK") || is_set("PMI_SIZE")) return Launcher::mpich;
  base::require<base::UsageError>(
      !is_set("TORCHELASTIC_RUN_ID"),
      "torchrun: its ranks have no group here; use mpirun -n N retort run RECIPE, or "
      "retort run RECIPE --ranks N on one machine.");
  base::require<base::UsageError>(
      number_of("SLURM_STEP_NUM_TASKS") <= 1, "srun started ", number_of("SLURM_STEP_NUM_TASKS"),
      " tasks that MPI does not know; use srun --mpi=pmix (Open MPI) or --mpi=pmi2 (MPICH).");
  return Launcher::none;
}

std::string why_not_here(Launcher by) {
  try {
    (void)loaded_world(by);
    return {};
  } catch (const base::EnvironmentError& error) {
    return error.what();
  }
}

std::unique_ptr<Group> world_group(LastWords last_words) {
  switch (const auto by = launcher()) {
    case Launcher::none:
      return single_group();
    case Launcher::own:
      return local_group();
    case Launcher::open_mpi:
    case Launcher::mpich:
      return std::unique_ptr<Group>(loaded_world(by)(launched_ranks(by), last_words));
  }
  return single_group();
}

}  // namespace retort::comm
