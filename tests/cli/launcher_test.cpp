// What launchers tell their ranks in variables, where MPI does not know the ranks.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "cli/tiny_project.h"
#include "support/message_of.h"

namespace retort::test {
namespace {

#ifdef RETORT_MPIRUN
// Slurm's PMIx says which rank this is, and not how many there are.  Each would run the whole job.
TEST(Launcher, OfTasksThatMpiDoesNotKnowIsRefused) {
  const TinyProject project;
  project.write_recipe({train_stage(384)});
  const auto refused = run({"run", "recipe.yaml", "--run-dir", "run"}, "", project.path(), [] {
    ::setenv("PMIX_RANK", "0", 1);
    ::setenv("SLURM_STEP_NUM_TASKS", "4", 1);
  });
  EXPECT_EQ(refused.code, 5) << refused.err;
  EXPECT_SAYS(refused.err, "the launcher started 4 ranks, but MPI knows 1");
  EXPECT_FALSE(std::filesystem::exists(project.path("run")));
}

// srun has started the daemons of mpirun, one a machine.
TEST(Launcher, MpirunCountsItsRanksAlsoWhereSlurmCountsItsDaemons) {
  const TinyProject project;
  project.write_recipe({train_stage(384)});
  const auto planned = run({"run", "recipe.yaml", "--run-dir", "run", "--dry-run"}, "", project.path(), [] {
    ::setenv("OMPI_COMM_WORLD_SIZE", "1", 1);
    ::setenv("SLURM_STEP_NUM_TASKS", "4", 1);
  });
  EXPECT_EQ(planned.code, 0) << planned.err;
}
#endif

}  // namespace
}  // namespace retort::test
