// Directories and files of other tools, given where a model is wanted: each is named, with what to do.
#include "retort/io/recognise.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "files_for_tests.h"
#include "retort/base/error.h"
#include "retort/io/model_directory.h"
#include "retort/io/safetensors.h"
#include "retort/io/tokenizer_file.h"
#include "support/temporary_directory.h"

namespace retort::io {
namespace {

namespace fs = std::filesystem;
using base::ModelError;
using test::message_of;
using test::write_file;

const std::string kPointer =
    "version https://git-lfs.github.com/spec/v1\n"
    "oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n";

struct Found {
  std::vector<std::string> files;
  const char* says;
  const char* remedy;
};

TEST(Recognise, NamesWhatADirectoryHolds) {
  const Found cases[] = {
      {{"adapter_model.safetensors", "adapter_config.json"}, "an adapter", "merge_and_unload()"},
      {{"config.json", "consolidated.safetensors"},
       "Mistral's own format",
       "convert_mistral_weights_to_hf.py"},
      {{"params.json", "consolidated.00.pth"}, "Meta's own format", "convert_llama_weights_to_hf.py"},
      {{"a-Q4_0.gguf", "b-Q8_0.gguf", "README.md"},
       "GGUF files (\"a-Q4_0.gguf\" and \"b-Q8_0.gguf\")",
       "path of one"},
      {{"config.json", "pytorch_model.bin"}, "can run code when it is read", "save_pretrained"},
      {{"zero_to_fp32.py", "latest"}, "a checkpoint of DeepSpeed", "zero_to_fp32.py"},
      {{"__0_0.distcp"}, "a checkpoint of FSDP", "accelerate merge-weights"},
      {{"config.json", "tf_model.h5"}, "weights of another library", "save_pretrained"},
      {{"config.json", "model.onnx"}, "weights of another library", "exported from"},
      {{"model_index.json"}, "diffusers", "language model"},
      {{"model.safetensors", "tokenizer.json"},
       "weights (\"model.safetensors\") and no config.json",
       "add the one"},
      {{"training_args.bin", "checkpoint-20/config.json", "checkpoint-40/config.json"},
       "models in its folders (\"checkpoint-20\" and \"checkpoint-40\")",
       "give one"},
      {{"refs/main", "snapshots/0123/config.json"}, "(\"snapshots/0123\")", "give one"},
  };
  for (const auto& one : cases) {
    SCOPED_TRACE(one.files.front());
    const test::TemporaryDirectory directory;
    for (const auto& name : one.files) {
      fs::create_directories((directory / name).parent_path());
      write_file(directory / name, "{}");
    }
    EXPECT_SAYS(what_is_there(directory.path()), one.says);
    EXPECT_SAYS(what_is_there(directory.path()), one.remedy);
    const auto said = message_of<ModelError>([&] { ModelDirectory::open(directory.path()); });
    EXPECT_SAYS(said, one.says);
    EXPECT_TRUE(said.ends_with('.') && said.find('\n') == said.npos) << said;
  }
}

TEST(Recognise, NamesTheModelThatAnAdapterIsMadeFor) {
  const test::TemporaryDirectory directory;
  write_file(directory / "adapter_config.json", R"({"base_model_name_or_path": "org/\u001b[31mbase"})");
  EXPECT_SAYS(what_is_there(directory.path()), "not a model, made for \"org/\\x1b[31mbase\"");
  for (const char* text : {"{", "[]", R"({"base": 1})"}) {
    write_file(directory / "adapter_config.json", text);
    EXPECT_SAYS(what_is_there(directory.path()), "an adapter");
  }
}

TEST(Recognise, SaysNothingOfWhatItDoesNotKnow) {
  const test::TemporaryDirectory directory;
  EXPECT_EQ(what_is_there(directory.path()), "");
  EXPECT_EQ(what_is_there(directory / "none"), "");
  write_file(directory / "config.json", "{}");
  write_file(directory / "optimizer.pt", "x");
  EXPECT_EQ(what_is_there(directory.path()), "");
}

TEST(Recognise, AsksForTheDirectoryOfAFile) {
  const test::TemporaryDirectory directory;
  write_file(directory / "model.safetensors", kPointer);
  EXPECT_SAYS(what_is_there(directory / "model.safetensors"), "give the directory that it is in");
  write_file(directory / "text", "words");
  EXPECT_SAYS(what_is_there(directory / "text"), "is a file, expected a model");
  write_file(directory / "rows", "PAR1....");
  EXPECT_SAYS(what_is_there(directory / "rows"), "is a Parquet file, expected a model");
}

struct OtherFormat {
  const char* what;
  std::string bytes;
};

const std::vector<OtherFormat>& other_formats() {
  static const std::vector<OtherFormat> formats{
      {"a Git LFS pointer; fetch the file itself with git lfs pull", kPointer},
      {"a web page", "\n<!DOCTYPE html><html><body>Not found</body></html>"},
      {"a zip archive", std::string("PK\x03\x04") + std::string(40, 'x')},
      {"a GGUF model", std::string("GGUF\x03") + std::string(40, '\0')}};
  return formats;
}

TEST(Recognise, NamesWhatStandsInThePlaceOfAFileOfAModel) {
  for (const auto& [what, bytes] : other_formats()) {
    SCOPED_TRACE(what);
    const test::TemporaryDirectory directory;
    const auto expect_named = [&](const char* file, const auto& read) {
      write_file(directory / file, bytes);
      const auto said = message_of<ModelError>(read);
      EXPECT_SAYS(said, file);
      EXPECT_SAYS(said, what);
    };
    expect_named("w.safetensors", [&] { SafetensorsFile::open(directory / "w.safetensors"); });
    for (const char* tokenizer : {"tokenizer.model", "tekken.json", "tokenizer.json"})
      expect_named(tokenizer, [&] { read_tokenizer_text(directory.path(), 1 << 20); });
    expect_named("config.json", [&] { ModelDirectory::open(directory.path()); });
    write_file(directory / "config.json", "{}");
    expect_named("model.safetensors.index.json", [&] { ModelDirectory::open(directory.path()); });
    expect_named("model.safetensors", [&] { ModelDirectory::open(directory.path()); });
  }
}

// The length of a header may begin like a pickle.
TEST(Recognise, TakesADamagedFileForWhatItIs) {
  const test::TemporaryDirectory directory;
  std::string header = R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  header.resize(0x280, ' ');
  write_file(directory / "w", test::safetensors_bytes(header, "1234"));
  EXPECT_NO_THROW(SafetensorsFile::open(directory / "w"));
  write_file(directory / "w", test::safetensors_bytes(header, "123"));
  EXPECT_SAYS(message_of<ModelError>([&] { SafetensorsFile::open(directory / "w"); }), "truncated");
}

TEST(Recognise, SaysHowToMakeATokenizerOfAnOlderForm) {
  const test::TemporaryDirectory directory;
  const auto refusal = [&] {
    return message_of<ModelError>([&] { read_tokenizer_text(directory.path(), 1 << 20); });
  };
  EXPECT_SAYS(refusal(), "complete the model directory");
  write_file(directory / "vocab.json", "{}");
  EXPECT_SAYS(refusal(), "AutoTokenizer.from_pretrained(directory)");
}

}  // namespace
}  // namespace retort::io
