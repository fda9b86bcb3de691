#include "retort/record/checkpoint_manifest.h"

#include <gtest/gtest.h>

#include "retort/base/error.h"
#include "support/message_of.h"
#include "support/temporary_directory.h"

namespace retort::record {
namespace {

using base::Json;

const Json kHead = {
    {"step", 3}, {"tokens", 96}, {"seconds", 1.5}, {"cursor", {{"taken", 1}}}, {"identity", Json::object()}};

std::vector<CheckpointPart> parts_of(std::int64_t ranks, std::int64_t units) {
  constexpr std::int64_t kElements = 855'654'400;  // of a block of 70B
  std::vector<CheckpointPart> parts;
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    CheckpointPart part{base::join("state-", 10'000 + rank, ".safetensors"), std::string(32, 'a'), {}};
    for (std::int64_t unit = 0; unit < units; ++unit)
      part.ranges.push_back({kElements / ranks * rank, kElements / ranks});
    parts.push_back(std::move(part));
  }
  return parts;
}

TEST(CheckpointManifest, OfManyRanksAndBlocksIsReadAsItWasWritten) {
  const test::TemporaryDirectory directory;
  const auto parts = parts_of(4096, 130);
  write_manifest(directory.path(), kHead, parts);
  const Json manifest = read_manifest(directory.path());
  EXPECT_EQ(manifest.at("format"), kCheckpointParts);
  EXPECT_EQ(manifest.at("files").size(), parts.size());
  EXPECT_EQ(manifest.at("ranges").at(parts.back().file), Json(parts.back().ranges));
}

TEST(CheckpointManifest, OfOneRankSaysNoRanges) {
  const test::TemporaryDirectory directory;
  write_manifest(directory.path(), kHead, parts_of(1, 3));
  const Json manifest = read_manifest(directory.path());
  EXPECT_EQ(manifest.at("format"), kWholeCheckpoint);
  EXPECT_FALSE(manifest.contains("ranges"));
  EXPECT_EQ(manifest.at("cursor"), kHead.at("cursor"));
}

TEST(CheckpointManifest, IsFoundDamagedWhicheverBitFlips) {
  const test::TemporaryDirectory directory;
  write_manifest(directory.path(), kHead, parts_of(2, 2));
  const auto path = directory / kManifest;
  const auto content = base::read_file(path);
  for (std::size_t at = 0; at + 1 < content.size(); ++at) {
    SCOPED_TRACE(at);
    auto damaged = content;
    damaged[at] = static_cast<char>(damaged[at] ^ 4);
    base::write_file_atomically(path, damaged);
    test::message_of<base::ModelError>([&] { (void)read_manifest(directory.path()); });
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace retort::record
