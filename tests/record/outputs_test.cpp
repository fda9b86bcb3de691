// What a finished stage left, and how its change is found.
#include "retort/record/outputs.h"

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>

#include "retort/base/error.h"
#include "retort/record/run_directory.h"
#include "support/message_of.h"
#include "support/temporary_directory.h"

namespace retort::record {
namespace {

using base::Json;
using base::Path;

class Outputs : public testing::Test {
 protected:
  void SetUp() override {
    write("models/a/model.safetensors", std::string(5000, 'w'));
    write("models/a/config.json", "{}");
    write("stages/a/finalists/2/config.json", "{}");
    write("stages/a.documents.jsonl", "{}");
    write("models/b/config.json", "{}");
    RunDirectory::opened_by_another(run_.path()).write_result("a", {{"kind", "prune"}, {"parameters", 3}});
  }
  void write(const Path& name, const std::string& content) const {
    base::make_directories((run_.path() / name).parent_path());
    base::write_file_atomically(run_.path() / name, content);
  }
  std::string wrong(Look look = Look::contents_where_times_differ) const {
    return wrong_with_outputs(run_, "a", look);
  }
  // In its place, so that size and inode stay.
  void flip_a_bit(const Path& name, bool keep_time) const {
    const auto path = run_.path() / name;
    const auto time = std::filesystem::last_write_time(path);
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    const auto first = file.get();
    file.seekp(0);
    file.put(static_cast<char>(first ^ 1));
    file.close();
    std::filesystem::last_write_time(path, keep_time ? time : time + std::chrono::nanoseconds(1));
  }

  test::TemporaryDirectory directory_;
  RunFiles run_{directory_ / "run"};
};

TEST_F(Outputs, StandInTheResultOfTheirStage) {
  const auto files = run_.result("a").at("output_files");
  std::string names;
  for (const auto& [name, file] : files.items()) {
    names += name + " ";
    EXPECT_EQ(file.at("xxh128").get<std::string>().size(), 32U);
  }
  EXPECT_EQ(names,
            "models/a/config.json models/a/model.safetensors stages/a/finalists/2/config.json "
            "stages/a.documents.jsonl ");
  EXPECT_EQ(files.at("models/a/model.safetensors").at("bytes"), 5000);
  EXPECT_EQ(wrong(), "");
  EXPECT_EQ(wrong(Look::contents), "");
}

TEST_F(Outputs, ThatAreGoneOrOfAnotherSizeAreFound) {
  std::filesystem::remove(run_.path() / "stages/a/finalists/2/config.json");
  EXPECT_EQ(wrong(), "stages/a/finalists/2/config.json is gone");
  write("models/a/config.json", "{ }");
  EXPECT_EQ(wrong(), "models/a/config.json has changed");
  std::filesystem::remove_all(run_.path() / "models/a");
  EXPECT_EQ(wrong(), "models/a/config.json is gone");
}

TEST_F(Outputs, WithAFlippedBitAreFound) {
  flip_a_bit("models/a/model.safetensors", /*keep_time=*/false);
  EXPECT_EQ(wrong(), "models/a/model.safetensors has changed");
}

TEST_F(Outputs, WithAFlippedBitUnderTheSameTimeAreFoundByTheirContents) {
  flip_a_bit("models/a/model.safetensors", /*keep_time=*/true);
  EXPECT_EQ(wrong(), "");
  EXPECT_EQ(wrong(Look::contents), "models/a/model.safetensors has changed");
}

TEST_F(Outputs, OfARunThatWasCopiedAreTheSame) {
  const RunFiles copy(directory_ / "copy");
  std::filesystem::copy(run_.path(), copy.path(), std::filesystem::copy_options::recursive);
  EXPECT_EQ(wrong_with_outputs(copy, "a", Look::contents_where_times_differ), "");
}

TEST_F(Outputs, OfAnEarlierVersionAreThereOrGone) {
  write("stages/a.json", R"({"kind": "prune", "parameters": 3})");
  flip_a_bit("models/a/model.safetensors", false);
  EXPECT_EQ(wrong(Look::contents), "");
  std::filesystem::remove_all(run_.path() / "models/a");
  EXPECT_EQ(wrong(), "models/a/config.json is gone");
  write("stages/a.json", R"({"kind": "evaluate"})");
  EXPECT_EQ(wrong(), "");
}

// A flipped digit of a checksum must not make a sound model look changed.
TEST_F(Outputs, OfADamagedResultAreNotKnown) {
  const auto content = base::read_file(run_.result_path("a"));
  for (std::size_t at = 0; at + 1 < content.size(); ++at) {
    SCOPED_TRACE(at);
    auto damaged = content;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    std::ofstream(run_.result_path("a"), std::ios::binary) << damaged;
    EXPECT_FALSE(run_.sound_result("a").has_value()) << damaged;
    EXPECT_EQ(wrong(), "");
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace retort::record
