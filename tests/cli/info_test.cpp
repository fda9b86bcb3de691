#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "cli/program.h"
#include "cli/tiny_project.h"
#include "retort/base/files.h"
#include "retort/base/json.h"
#include "support/message_of.h"
#include "support/outside_data.h"
#include "support/temporary_directory.h"

namespace retort::test {
namespace {

namespace fs = std::filesystem;

TEST(Info, TellsShapesParametersAndSparsityOfAModel) {
  const base::Json info = base::Json::parse(run({"info", "models/europa-5m", "--json"}).out);

  EXPECT_EQ(info["kind"], "model");
  EXPECT_EQ(info["parameters"], 5'509'824);
  EXPECT_EQ(info["dtype"], "bfloat16");
  EXPECT_EQ(info["block"], base::Json::parse(R"({"heads":6,"kv_heads":2,"head_dim":32,"mlp_width":512})"));
  EXPECT_EQ(info["sparsity"]["matrices_2_of_4"], 0);
  EXPECT_EQ(info["tokenizer"]["steps"],
            base::Json::parse(R"json(["Split (llama3)", "ByteLevel", "BPE"])json"));
  EXPECT_SAYS(run({"info", "models/europa-5m"}).out, "parameters");
}

/// Zeroes the first and third of every four bf16 weights of the file's last quarter.
void make_half_sparse(const fs::path& file) {
  std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
  const auto size = fs::file_size(file);
  const std::string zeros(2, '\0');
  for (auto at = (size - size / 4) / 8 * 8; at + 8 <= size; at += 8) {
    stream.seekp(static_cast<std::streamoff>(at));
    stream.write(zeros.data(), 2);
    stream.seekp(static_cast<std::streamoff>(at + 4));
    stream.write(zeros.data(), 2);
  }
}

TEST(Info, FindsTwoOfFourInTheWeightsThemselves) {
  const TemporaryDirectory directory;
  fs::copy(source() / "models/europa-5m", directory.path() / "m", fs::copy_options::recursive);
  fs::permissions(directory.path() / "m" / "model.safetensors", fs::perms::owner_write,
                  fs::perm_options::add);
  make_half_sparse(directory.path() / "m" / "model.safetensors");

  const base::Json info = base::Json::parse(run({"info", "m", "--json"}, "", directory.path()).out);

  EXPECT_GT(info["sparsity"]["matrices_2_of_4"].get<int>(), 10);
  EXPECT_LT(info["sparsity"]["matrices_2_of_4"].get<int>(), 60);
  EXPECT_GT(info["sparsity"]["zero_fraction"].get<double>(), 0.1);
}

TEST(Info, TellsStagesOfARunAndStepOfACheckpoint) {
  const TemporaryDirectory directory;
  const fs::path run_path = directory.path() / "run";
  fs::create_directories(run_path / "stages");
  fs::create_directories(run_path / "step-00000003");
  std::ofstream(run_path / "recipe.json")
      << R"({"version":1,"stages":{"a":{"kind":"finetune"},"b":{"kind":"prune"}}})";
  std::ofstream(run_path / "provenance.json") << R"({"starts":[{"host":"x"}]})";
  std::ofstream(run_path / "stages" / "a.json") << R"({"tokens":100})";
  std::ofstream(run_path / "step-00000003" / "state.safetensors") << "x";
  std::ofstream(run_path / "step-00000003" / "manifest.json")
      << R"({"step":3,"tokens":96,"seconds":1.5,"identity":{},"files":{"state.safetensors":"0"}})";

  const base::Json run_info = base::Json::parse(run({"info", run_path.string(), "--json"}).out);
  EXPECT_EQ(run_info["stages"]["a"],
            base::Json::parse(R"({"kind":"finetune","finished":true,"tokens":100})"));
  EXPECT_EQ(run_info["stages"]["b"]["finished"], false);
  const base::Json checkpoint =
      base::Json::parse(run({"info", (run_path / "step-00000003").string(), "--json"}).out);
  EXPECT_EQ(checkpoint["step"], 3);
  EXPECT_EQ(checkpoint["files"]["state.safetensors"], "damaged");
}

// A flipped bit of the manifest that changes no name of a file was not told.
TEST(Info, FindsADamagedManifest) {
  const TinyProject project;
  project.write_recipe({train_stage(256)});
  ASSERT_EQ(project.run_recipe().code, 0);
  fs::path checkpoint;
  for (const auto& entry : fs::directory_iterator(project.path("run/checkpoints/born")))
    checkpoint = entry.path();
  const auto manifest = checkpoint / "manifest.json";
  const auto info = [&] {
    return base::Json::parse(project.run({"info", checkpoint.string(), "--json"}).out);
  };
  EXPECT_EQ(info()["files"]["manifest.json"], "good");
  EXPECT_TRUE(info()["notes"].empty());
  const auto content = base::read_file(manifest);
  std::ofstream(manifest) << content.substr(0, 1) + std::string(std::size_t{2} << 20, ' ') +
                                 content.substr(1);
  EXPECT_EQ(info()["files"]["manifest.json"], "good") << "longer than 1 MiB, with the same values";
  auto damaged = content;
  damaged[content.find("\"tokens\": ") + 10] ^= 1;
  std::ofstream(manifest) << damaged;
  EXPECT_EQ(info()["files"]["manifest.json"], "damaged");
  EXPECT_EQ(info()["files"]["state.safetensors"], "good");
  EXPECT_SAYS(info()["notes"][0].get<std::string>(), "the checksum does not fit");
}

TEST(Info, RefusesDamagedFilesWithOneSentence) {
  const TemporaryDirectory directory;
  fs::create_directories(directory.path() / "run");
  for (const char* text : {"{", "[]", "{\"stages\": 3}", ""}) {
    std::ofstream(directory.path() / "run" / "recipe.json") << text;
    std::ofstream(directory.path() / "run" / "provenance.json") << "{}";
    const Finished finished = run({"info", (directory.path() / "run").string()});
    EXPECT_EQ(finished.code, 3) << text << finished.err;
  }
}

}  // namespace
}  // namespace retort::test
