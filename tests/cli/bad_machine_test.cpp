// A machine that has less than a command asks for.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdlib>

#include "cli/refusal.h"
#include "retort/base/files.h"
#include "support/outside_data.h"

namespace retort::test {
namespace {

TEST(BadMachine, WithoutTheDeviceIsNamed) {
  const auto hide_devices = [] {
    for (const char* variable : {"CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"}) ::setenv(variable, "-1", 1);
  };
  const Finished finished =
      run({"generate", "models/europa-5m", "--prompt", "The", "--device", "cuda"}, "", {}, hide_devices);
  EXPECT_EQ(finished.code, 5) << finished.err;
  EXPECT_NE(said(finished.err).find("cuda"), std::string::npos) << finished.err;
}

TEST(BadMachine, WithoutTheMemoryEndsWithOneSentence) {
  const TemporaryDirectory directory;
  const auto model = directory / "patient";
  std::filesystem::copy(source() / "models" / "europa-5m", model);
  base::Json config = base::Json::parse(base::read_file(model / "config.json"));
  config["max_position_embeddings"] = 1 << 20;  // enough for what follows
  base::write_file_atomically(model / "config.json", config.dump());
  const auto limit_memory = [] {
    const rlimit limit{std::uint64_t{2} << 30, std::uint64_t{2} << 30};
    ::setrlimit(RLIMIT_AS, &limit);
  };
  // Keys and values of so many tokens take 2.5 GB: the machine has them, so the plan is fine.
  const Finished finished = run({"generate", model.string(), "--prompt", "The", "--max-new-tokens", "400000"},
                                "", {}, limit_memory);
  EXPECT_EQ(finished.code, 6) << finished.err;
  EXPECT_EQ(said(finished.err).rfind("retort: error: out of memory;", 0), 0U) << finished.err;
}

// Where the library is not mapped, where one of its initialisers finds no memory, and where a model does not
// fit.
TEST(BadMachine, WithoutMemoryForTheLibraryEndsWithOneSentence) {
  for (const std::uint64_t megabytes : {60, 200, 390, 430, 490}) {
    SCOPED_TRACE(megabytes);
    const auto limit_memory = [&] {
      const rlimit limit{megabytes << 20, megabytes << 20};
      ::setrlimit(RLIMIT_AS, &limit);
    };
    const Finished finished = run(
        {"generate", "models/europa-5m", "--prompt", "The", "--max-new-tokens", "2"}, "", {}, limit_memory);
    EXPECT_TRUE(finished.code == 6 || finished.code == 5 || finished.code == 0)
        << finished.code << finished.err;
    EXPECT_TRUE(finished.code == 0 || finished.err.find("(ulimit -v)") != std::string::npos) << finished.err;
  }
}

}  // namespace
}  // namespace retort::test
