// What a model directory holds and Retort does not use is told by every command that loads the model, once.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "cli/tiny_project.h"
#include "retort/base/files.h"
#include "support/message_of.h"

namespace retort::test {
namespace {

int times(const std::string& text, const std::string& part) {
  int count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++count;
  return count;
}

void add_keys(const TinyProject& project, const std::string& file) {
  auto config = base::parse_json(base::read_file(project.path(file)));
  config["new_key"] = 1;
  config["attention_dropout"] = 0.1;
  project.write(file, config.dump());
}

void expect_told_once(const Finished& finished) {
  EXPECT_EQ(finished.code, 0) << finished.err;
  EXPECT_EQ(times(finished.err, "\"new_key\" is not known and was not used"), 1) << finished.err;
  EXPECT_EQ(times(finished.err, "attention_dropout 0.1 is not applied"), 1) << finished.err;
}

TEST(ModelNotes, AreToldByEveryCommandThatLoadsTheModel) {
  const TinyProject project;
  copy_model(project, "m");
  add_keys(project, "m/config.json");
  expect_told_once(project.run({"eval", "m", "--text", "text.txt", "--context", "64", "--teacher", "m"}));
  expect_told_once(project.run({"generate", "m", "--prompt", "the", "--max-new-tokens", "1"}));
  expect_told_once(project.run({"bench", "gemm", "m", "--seconds", "1", "--dtype", "fp32"}));
}

TEST(ModelNotes, AreToldOnceByARunHoweverManyStagesLoadTheModel) {
  const TinyProject project;
  copy_model(project, "m");
  add_keys(project, "m/config.json");
  project.write_recipe({finetune_stage("./m"),
                        "{name: scores, kind: evaluate, models: [./m, tuned], teacher: ././m, data: [text], "
                        "windows: rolling, context: 64}"});
  expect_told_once(project.run_recipe({"--dry-run"}));
  expect_told_once(project.run_recipe());
}

TEST(ModelNotes, AreToldOfTheConfigurationThatATrainStageBeginsWith) {
  const TinyProject project;
  add_keys(project, "config.json");
  project.write_recipe({train_stage(128)});
  expect_told_once(project.run_recipe());
}

// A file with one tensor more, of the bytes of another that are all changed.
void add_head(const std::filesystem::path& file, const std::string& copied_from) {
  const std::string text = base::read_file(file);
  std::uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, text.data(), sizeof header_bytes);
  auto header = base::Json::parse(text.substr(8, header_bytes));
  std::string body = text.substr(8 + header_bytes);
  auto tensor = header.at(copied_from);
  const auto begin = tensor.at("data_offsets")[0].get<std::size_t>(),
             end = tensor.at("data_offsets")[1].get<std::size_t>();
  auto values = body.substr(begin, end - begin);
  for (std::size_t sign = 3; sign < values.size(); sign += 4)
    values[sign] = static_cast<char>(values[sign] ^ 0x80);
  tensor["data_offsets"] = {body.size(), body.size() + values.size()};
  header["lm_head.weight"] = tensor;
  body += values;
  const std::string written = header.dump();
  const std::uint64_t length = written.size();
  base::write_file_atomically(
      file, std::string(reinterpret_cast<const char*>(&length), sizeof length) + written + body);
}

TEST(ModelNotes, TellOfAHeadThatTheConfigurationDenies) {
  const TinyProject project;
  copy_model(project, "m");
  add_head(project.path("m/model.safetensors"), "model.embed_tokens.weight");
  const std::vector<std::string> eval{"eval", "m", "--text", "text.txt", "--context", "64", "--json"};
  const Finished with_head = project.run(eval);
  EXPECT_EQ(with_head.code, 0) << with_head.err;
  EXPECT_EQ(times(with_head.err, "lm_head.weight differs from the embedding; the head is read as it is"), 1)
      << with_head.err;
  // What config.json says plainly has the same loss and no warning.
  auto config = base::parse_json(base::read_file(project.path("m/config.json")));
  ASSERT_EQ(config.at("tie_word_embeddings"), true);
  config["tie_word_embeddings"] = false;
  project.write("m/config.json", config.dump());
  const Finished untied = project.run(eval);
  EXPECT_EQ(untied.code, 0) << untied.err;
  EXPECT_EQ(times(untied.err, "lm_head.weight"), 0) << untied.err;
  const auto nll = [](const Finished& finished) {
    return base::Json::parse(finished.out).at("models")[0].at("mean").at("nll").get<double>();
  };
  EXPECT_EQ(nll(with_head), nll(untied));
}

TEST(ModelNotes, TellOfWeightsThatAreNotRead) {
  const TinyProject project;
  copy_model(project, "m");
  std::filesystem::copy_file(project.path("m/model.safetensors"), project.path("m/consolidated.safetensors"));
  const char* note = "not from \"consolidated.safetensors\"; remove what is not meant";
  const Finished finished = project.run({"generate", "m", "--prompt", "the", "--max-new-tokens", "1"});
  EXPECT_EQ(finished.code, 0);
  EXPECT_EQ(times(finished.err, note), 1) << finished.err;
  EXPECT_SAYS(project.run({"info", "m"}).out, note);
}

TEST(ModelNotes, TellOfWeightsThatAreNotFinite) {
  const TinyProject project;
  copy_model(project, "m");
  EXPECT_EQ(times(project.run({"info", "m"}).out, "not finite"), 0);
  std::string weights = base::read_file(project.path("m/model.safetensors"));
  weights.replace(weights.size() - 4, 4, std::string("\0\0\xc0\x7f", 4));
  project.write("m/model.safetensors", weights);
  const Finished finished = project.run({"info", "m"});
  EXPECT_EQ(finished.code, 0);
  EXPECT_SAYS(finished.out, "values that are not finite (NaN or infinity) are in \"model.");
}

TEST(ModelNotes, TellOfWeightsThatAreNotAsTheConfigurationSays) {
  const TinyProject project;
  copy_model(project, "m");
  auto config = base::parse_json(base::read_file(project.path("m/config.json")));
  config["dtype"] = "bfloat16";
  project.write("m/config.json", config.dump());
  const Finished finished = project.run({"generate", "m", "--prompt", "the", "--max-new-tokens", "1"});
  EXPECT_EQ(finished.code, 0);
  EXPECT_EQ(times(finished.err, "config.json says bfloat16, but all weights are float32"), 1) << finished.err;
}

}  // namespace
}  // namespace retort::test
