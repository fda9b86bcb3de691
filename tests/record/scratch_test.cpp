#include "retort/record/scratch.h"

#include <gtest/gtest.h>

#include "support/temporary_directory.h"

namespace retort::record {
namespace {

using base::Json;

TEST(Scratch, IsGoneOnWithUnderTheSameIdentityOnlyHoweverLongThatIs) {
  const test::TemporaryDirectory directory;
  const auto scratch = directory / "scratch", results = directory / "results";
  const Json identity = {{"files", std::string(std::size_t{3} << 20, 'x')}};
  const auto keep = [&] {
    for (const auto& folder : {scratch, results})
      base::write_file_atomically(folder / "block-00003.safetensors", "done");
  };
  const auto is_kept = [&] {
    return base::holds_files(results) && std::filesystem::exists(scratch / "block-00003.safetensors");
  };
  enter_scratch(scratch, identity, {results});
  keep();
  EXPECT_TRUE(is_scratch_of(scratch, identity));
  enter_scratch(scratch, identity, {results});
  EXPECT_TRUE(is_kept());
  const Json other = {{"files", "others"}};
  EXPECT_FALSE(is_scratch_of(scratch, other));
  enter_scratch(scratch, other, {results});
  EXPECT_FALSE(is_kept());
  EXPECT_TRUE(is_scratch_of(scratch, other));
}

// A folder in a run directory is a place where people put notes.
TEST(Scratch, LeavesFilesThatNoStageWrote) {
  const test::TemporaryDirectory directory;
  const auto scratch = directory / "scratch";
  const std::vector<std::string> ours = {"block-00001.safetensors", "hidden-2-1-of-3.raw", "search.jsonl",
                                         "sparse-00007.safetensors", "measured-00000.safetensors"},
                                 theirs = {"notes.txt", "block-of-notes.txt", "steps.csv"};
  const auto fill = [&] {
    for (const auto* names : {&ours, &theirs})
      for (const auto& name : *names) base::write_file_atomically(scratch / name, name);
    base::make_directories(scratch / "step-00000012");
    base::make_directories(scratch / "plots");
  };
  const auto expect_only_theirs = [&] {
    for (const auto& name : ours) EXPECT_FALSE(std::filesystem::exists(scratch / name)) << name;
    EXPECT_FALSE(std::filesystem::exists(scratch / "step-00000012"));
    for (const auto& name : theirs) EXPECT_EQ(base::read_file(scratch / name), name);
    EXPECT_TRUE(std::filesystem::exists(scratch / "plots"));
  };
  enter_scratch(scratch, 1);
  fill();
  enter_scratch(scratch, 2);
  expect_only_theirs();
  fill();
  remove_scratch(scratch);
  expect_only_theirs();
  EXPECT_FALSE(is_scratch_of(scratch, 2));

  enter_scratch(directory / "other", 1);
  remove_scratch(directory / "other");
  EXPECT_FALSE(std::filesystem::exists(directory / "other")) << "nothing else was in it";
}

}  // namespace
}  // namespace retort::record
