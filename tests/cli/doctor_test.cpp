// What a machine and a directory offer, as `retort doctor` tells it.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "cli/program.h"
#include "retort/base/json.h"
#include "support/message_of.h"
#include "support/temporary_directory.h"

namespace retort::test {
namespace {

struct Told {
  std::string verdict, found, advice;
};

std::map<std::string, Told> findings_of(const Finished& finished) {
  std::map<std::string, Told> findings;
  for (const auto& finding : base::parse_json(finished.out))
    findings[finding.at("what")] = {finding.at("verdict"), finding.at("found"), finding.at("advice")};
  return findings;
}

TEST(Doctor, FindsNothingWrongWhereRunsWork) {
  const TemporaryDirectory directory;
  const auto finished = run({"doctor", directory.path().string(), "--json"});
  EXPECT_EQ(finished.code, 0) << finished.out;
  const auto findings = findings_of(finished);
  for (const auto* what : {"processors", "instructions", "memory", "shared memory", "libtorch", "Parquet",
                           "accelerators", "Open MPI", "MPICH", "launcher", "directory"})
    EXPECT_TRUE(findings.contains(what)) << what;
  EXPECT_EQ(findings.at("libtorch").verdict, "ok");
  EXPECT_EQ(findings.at("directory").verdict, "ok");
  EXPECT_SAYS(findings.at("directory").found, "free");
  EXPECT_TRUE(std::filesystem::is_empty(directory.path())) << "what was tried is gone";
}

TEST(Doctor, SaysWhatMovesBytesBetweenAccelerators) {
  const auto told = [](const char* library) {
    return findings_of(run({"doctor", "--json"}, "", {}, [&] { ::setenv("RETORT_NCCL", library, 1); }))
        .at("accelerators");
  };
  EXPECT_SAYS(told(RETORT_TEST_NCCL).found, "libnccl.so.2, version 22703");
  EXPECT_SAYS(told("none").found, "no NCCL wanted");
  const auto missing = told("/nowhere/libnccl.so.2");
  EXPECT_EQ(missing.verdict, "note");
  EXPECT_SAYS(missing.advice, "/nowhere/libnccl.so.2");
}

TEST(Doctor, SaysWhyADirectoryWillNotDo) {
  const auto finished = run({"doctor", "/proc"});
  EXPECT_EQ(finished.code, 5);
  EXPECT_SAYS(finished.out, "directory: /proc/.retort-doctor-");
  EXPECT_SAYS(finished.out, "wrong");
}

TEST(Doctor, MakesNoDirectory) {
  const TemporaryDirectory directory;
  const auto missing = directory.path() / "not" / "there";
  const auto found = findings_of(run({"doctor", missing.string(), "--json"})).at("directory");
  EXPECT_EQ(found.verdict, "note");
  EXPECT_SAYS(found.advice, "is not there yet; looked at " + directory.path().string());
  EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
}

TEST(Doctor, KnowsWhenMpirunMissesAMachine) {
  const auto told = [](const char* time, const char* patience, const char* here = "2") {
    return findings_of(run({"doctor", "--json"}, "", {}, [&] {
      ::setenv("OMPI_COMM_WORLD_SIZE", "4", 1);
      ::setenv("OMPI_COMM_WORLD_LOCAL_SIZE", here, 1);
      ::setenv("OMPI_MCA_oob_tcp_keepalive_time", time, 1);
      ::setenv("OMPI_MCA_oob_tcp_keepalive_intvl", "5", 1);
      ::setenv("OMPI_MCA_oob_tcp_keepalive_probes", "3", 1);
      ::setenv("RETORT_PATIENCE_SECONDS", patience, 1);
    }));
  };
  const auto soon = told("10", "30").at("lost machine");
  EXPECT_EQ(soon.verdict, "ok");
  EXPECT_EQ(soon.found, "missed by mpirun after 25 s");
  const auto late = told("300", "30").at("lost machine");
  EXPECT_EQ(late.verdict, "note");
  EXPECT_SAYS(late.advice, "set OMPI_MCA_oob_tcp_keepalive_time=10");
  EXPECT_EQ(told("300", "0").at("lost machine").verdict, "ok") << "ranks wait for ever";
  EXPECT_EQ(told("0", "30").at("lost machine").found, "never missed by mpirun");
  EXPECT_EQ(told("300", "30", "4").count("lost machine"), 0U) << "on one machine";
}

TEST(Doctor, KnowsTheLauncherThatStartedIt) {
  const auto open_mpi = run({"doctor", "--json"}, "", {}, [] {
    ::unsetenv("OMPI_MCA_odls_base_sigkill_timeout");
    ::setenv("OMPI_COMM_WORLD_SIZE", "1", 1);
  });
  EXPECT_EQ(findings_of(open_mpi).at("launcher").found, "Open MPI");
  const auto advice = findings_of(open_mpi).at("launcher").advice;
  EXPECT_SAYS(advice,
              "kills ranks 1 s after Ctrl-C or SIGTERM, and delays every early end by up to twice as long");
  EXPECT_SAYS(advice, "OMPI_MCA_odls_base_sigkill_timeout, which is not set");
  EXPECT_SAYS(advice, "USR1 to mpirun, or a file named stop in the run directory, saves at once");
  const auto patient = run({"doctor", "--json"}, "", {}, [] {
    ::setenv("OMPI_MCA_odls_base_sigkill_timeout", "600", 1);
    ::setenv("OMPI_COMM_WORLD_SIZE", "1", 1);
  });
  EXPECT_SAYS(findings_of(patient).at("launcher").advice, "kills ranks 600 s after");
  EXPECT_SAYS(findings_of(patient).at("launcher").advice,
              "OMPI_MCA_odls_base_sigkill_timeout, which is set, says how long");
  const auto torchrun = run({"doctor", "--json"}, "", {}, [] { ::setenv("TORCHELASTIC_RUN_ID", "x", 1); });
  EXPECT_EQ(torchrun.code, 5);
  EXPECT_SAYS(findings_of(torchrun).at("launcher").advice, "use mpirun -n N retort run RECIPE");
}

}  // namespace
}  // namespace retort::test
