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
    for (const auto& folder : {scratch, results}) base::write_file_atomically(folder / "block", "done");
  };
  const auto is_kept = [&] {
    return base::holds_files(results) && std::filesystem::exists(scratch / "block");
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

}  // namespace
}  // namespace retort::record
