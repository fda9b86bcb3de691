// GGUF files through the program.  tests/io goes through the ways in which such a file can lie; here it is
// the way from the file to the person.
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <sstream>
#include <stdexcept>

#include "cli/refusal.h"
#include "retort/base/files.h"
#include "support/gguf_writer.h"
#include "support/message_of.h"
#include "support/outside_data.h"

namespace retort::test {
namespace {

namespace fs = std::filesystem;

constexpr const char* kAgain = "; download or convert the file again.";

GgufWriter sound_file() {
  auto file = tiny_gguf_metadata();
  add_tiny_tokenizer(file);
  add_tiny_tensors(file);
  return file;
}

// The tensor `name` of the file.
GgufWriter::Tensor& tensor_of(GgufWriter& file, const std::string& name) {
  for (auto& tensor : file.tensors)
    if (tensor.name == name) return tensor;
  throw std::out_of_range(name);
}

struct BadGguf {
  const char* what;
  std::function<std::string()> bytes;
  std::string says;               ///< after the name of the file
  bool is_shown_by_info = false;  ///< as its header is sound
};

// A sound file that `change` makes bad.
std::function<std::string()> changed(const std::function<void(GgufWriter&)>& change) {
  return [change] {
    GgufWriter file = sound_file();
    change(file);
    return file.bytes();
  };
}

std::function<std::string()> cut_to(std::size_t bytes) {
  return [bytes] { return sound_file().bytes().substr(0, bytes); };
}

const std::vector<BadGguf>& bad_files() {
  static const std::vector<BadGguf> cases = {
      {"an empty file", cut_to(0),
       "0 bytes, expected a GGUF file of at least 24 bytes; download or export the file again."},
      {"cut in the metadata", cut_to(30),
       std::string(
           "a metadata key at byte 24 needs 8 bytes, but only 6 follow; the file is truncated or damaged") +
           kAgain},
      {"cut in the last tensor", cut_to(sound_file().bytes().size() - 1),
       std::string(
           "tensor \"blk.0.ffn_down.weight\" needs bytes 640 to 768 of the data, found 767; the file is "
           "truncated") +
           kAgain},
      {"another file", [] { return std::string("version https://git-lfs.github.com/spec/v1\n"); },
       "does not begin with \"GGUF\"; this is not a GGUF file or it is damaged."},
      {"version 1", changed([](auto& file) { file.version = 1; }),
       "is GGUF version 1, expected 2 or 3; convert the model again with a current llama.cpp."},
      {"version 99", changed([](auto& file) { file.version = 99; }),
       "is GGUF version 99, expected 2 or 3; convert the model again with a current llama.cpp."},
      {"more tensors than there can be",
       changed([](auto& file) { file.claimed_tensors = std::uint64_t{1} << 60; }),
       std::string("claims 1152921504606846976 tensors, expected at most 200000; the file is damaged") +
           kAgain},
      {"more tensors than there are", changed([](auto& file) { file.claimed_tensors = 1000; }),
       "a tensor is named \"\", expected printable text of 1 to "},
      {"fewer tensors than there are", changed([](auto& file) { file.claimed_tensors = 10; }),
       "tensor \"model.layers.0.mlp.down_proj.weight\" is missing; the weights do not belong to the "
       "metadata"},
      {"more metadata than there can be",
       changed([](auto& file) { file.claimed_keys = std::numeric_limits<std::uint64_t>::max(); }),
       std::string("claims 18446744073709551615 metadata keys, expected at most 65536; the file is damaged") +
           kAgain},
      {"a tensor outside the file",
       changed([](auto& file) { file.tensors.back().offset = std::uint64_t{1} << 40; }),
       std::string(
           "tensor \"blk.0.ffn_down.weight\" needs bytes 1099511627776 to 1099511627904 of the data, found "
           "768; the file is truncated") +
           kAgain},
      {"a tensor inside another", changed([](auto& file) { file.tensors[1].offset = 32; }),
       std::string(
           "tensor \"output_norm.weight\" begins at byte 32 of the data, inside \"token_embd.weight\", "
           "which ends at 96") +
           kAgain},
      {"a type that is not read", changed([](auto& file) { file.tensors[0].type = 23; }),
       "tensor \"token_embd.weight\" is stored as IQ4_XS, expected F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, "
       "Q5_1 "
       "or Q2_K to Q6_K; use a file with one of these types."},
      {"a type that does not exist", changed([](auto& file) { file.tensors[0].type = 1000; }),
       "tensor \"token_embd.weight\" is stored as type 1000, expected F32, "},
      {"another architecture",
       [] {
         auto file = tiny_gguf_metadata("mamba");
         add_tiny_tensors(file);
         return file.bytes();
       },
       "general.architecture is \"mamba\", expected one of \"llama\", \"qwen2\", \"qwen3\", \"phi3\", "
       "\"gemma2\", "
       "\"gemma3\", \"deci\"; use a model of one of them."},
      {"weights of another shape", changed([](auto& file) {
         tensor_of(file, "blk.0.ffn_up.weight").extents = {8, 4};
       }),
       "tensor \"model.layers.0.mlp.up_proj.weight\" has shape [4, 8], expected [8, 4]"},
      {"a number that is not finite",
       changed([](auto& file) { file.real("llama.rope.freq_base", std::numeric_limits<float>::infinity()); }),
       "metadata \"llama.rope.freq_base\" is \"inf\", expected a number; convert the model again."},
      {"names that are not UTF-8", changed([](auto& file) { file.number("general.\xFF", 1); }),
       "metadata key 15 is \"general.\\xff\", expected printable text of 1 to 65535 bytes; download or "
       "convert the file again."},
      {"an alignment that is not text",
       changed([](auto& file) { file.texts("general.alignment", {"\xFF"}); }),
       "general.alignment is \"[\"\uFFFD\"]\", expected a power of two up to 1048576; download or convert "
       "the file again."},
      {"weights that are not numbers", changed([](auto& file) {
         file.tensors.back().bytes.replace(0, 4, little_endian(std::numeric_limits<float>::quiet_NaN()));
       }),
       "model.layers.0.mlp.down_proj.weight holds values that are not finite", true},
      {"no tokenizer",
       [] {
         auto file = tiny_gguf_metadata();
         add_tiny_tensors(file);
         return file.bytes();
       },
       "has no tokenizer (tokenizer.ggml.tokens); use a GGUF file with one.", true},
      {"a tokenizer of more ids than the model",
       [] {
         auto file = tiny_gguf_metadata();
         file.text("tokenizer.ggml.model", "gpt2");
         file.text("tokenizer.ggml.pre", "gpt-2");
         file.texts("tokenizer.ggml.tokens", {"a", "b", "c", "d", "e", "f", "g"});
         file.texts("tokenizer.ggml.merges", {});
         add_tiny_tensors(file);
         return file.bytes();
       },
       "the tokenizer has 7 ids, the model 6 rows", true},
  };
  return cases;
}

const std::vector<std::string> kEval = {"eval", "bad.gguf", "--text", "text.txt", "--context", "16"};

// A project with bad.gguf, and text of letters that its tokenizer knows.
struct GgufProject : TinyProject {
  explicit GgufProject(const std::string& bytes) {
    std::string text;
    for (std::size_t document = 0; document < 200; ++document)
      text += std::string(document % 7 + 40, 'a') + "bab\n\n";
    write("text.txt", text);
    write("bad.gguf", bytes);
  }
};

TEST(BadGguf, IsRefusedByEvalInOneSentence) {
  for (const auto& bad : bad_files()) {
    SCOPED_TRACE(bad.what);
    const GgufProject project(bad.bytes());
    expect_refusal(project, kEval, 4, "bad.gguf: " + bad.says);
  }
}

// It reads files as eval does, so every third shows it.
TEST(BadGguf, IsRefusedByARunThatThenLeavesNoRunDirectory) {
  int number = 0;
  for (const auto& bad : bad_files()) {
    if (number++ % 3 != 0) continue;
    SCOPED_TRACE(bad.what);
    const GgufProject project(bad.bytes());
    project.write_recipe({finetune_stage("./bad.gguf")});
    expect_refusal(project, {"run", "recipe.yaml", "--run-dir", "deep/run"}, 4, "bad.gguf: " + bad.says);
  }
}

// It shows what there is of a model whose values or whose tokenizer cannot be used.
TEST(BadGguf, IsRefusedByInfoUnlessItsHeaderIsSound) {
  for (const auto& bad : bad_files()) {
    SCOPED_TRACE(bad.what);
    const GgufProject project(bad.bytes());
    if (bad.is_shown_by_info)
      EXPECT_EQ(project.run({"info", "bad.gguf"}).code, 0);
    else
      expect_refusal(project, {"info", "bad.gguf"}, 4, "bad.gguf: " + bad.says);
  }
}

// The cases above are bad in one way only.
TEST(BadGguf, IsMadeFromASoundFile) {
  const GgufProject project(sound_file().bytes());
  const auto eval = project.run(kEval);
  EXPECT_EQ(eval.code, 0) << eval.err;
  project.write_recipe({finetune_stage("./bad.gguf")});
  const auto run = project.run_recipe();
  EXPECT_EQ(run.code, 0) << run.err;
}

// Of the file only its shape and its tokenizer are taken.
TEST(Gguf, MayBeTheConfigurationThatATrainStageBeginsWith) {
  const GgufProject project(sound_file().bytes());
  project.write_recipe(
      {"{name: born, kind: train, config: bad.gguf, tokenizer: bad.gguf, data: [text], tokens: 256, "
       "packing: {sequence_length: 32}, batch: {sequences: 2}, evaluate_tokens: 64}"});
  const auto dry = project.run_recipe({"--dry-run"});
  EXPECT_EQ(dry.code, 0) << dry.err;
  const auto run = project.run_recipe();
  ASSERT_EQ(run.code, 0) << run.err;
  const auto info = [&](const char* model) {
    return base::Json::parse(project.run({"info", model, "--json"}).out);
  };
  const auto born = info("run/models/born"), file = info("bad.gguf");
  for (const char* key : {"architecture", "parameters", "block", "hidden_size", "vocab_size", "context"})
    EXPECT_EQ(born.at(key), file.at(key)) << key;
  EXPECT_EQ(born.at("tokenizer").at("steps"), file.at("tokenizer").at("steps"));
}

TEST(Gguf, ThatIsBadIsNoConfigurationForATrainStage) {
  const GgufProject project(cut_to(30)());
  project.write_recipe(
      {"{name: born, kind: train, config: bad.gguf, tokenizer: models/europa-5m, data: [text], tokens: 256, "
       "packing: {sequence_length: 32}}"});
  expect_refusal(project, {"run", "recipe.yaml", "--run-dir", "run"}, 4, "the file is truncated or damaged");
}

// In order, as a dry run prints them.
std::vector<double> totals_of_plans(const std::string& log) {
  std::vector<double> totals_bytes;
  std::istringstream lines(log);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name, unit;
    double number = 0;
    if (!(words >> name >> number >> unit) || name != "total") continue;
    EXPECT_TRUE(unit == "GB" || unit == "MB") << line;
    totals_bytes.push_back(number * (unit == "GB" ? 1e9 : 1e6));
  }
  return totals_bytes;
}

std::string numbered_documents(const std::string& word, const std::string& separator) {
  std::string text;
  for (int document = 0; document < 300; ++document) {
    for (int i = 0; i < 60; ++i) text += word + ' ' + std::to_string(document * i) + ' ';
    text += separator;
  }
  return text;
}

// What `make smollm2` asks for, before there is a program that could plan.
std::int64_t asked_bytes_of_fetching() {
  const std::string tool = base::read_file(source() / "tools" / "fetch_smollm2"), key = "\nneeded_bytes=";
  const auto at = tool.find(key);
  if (at == tool.npos) throw std::runtime_error("tools/fetch_smollm2 asks for no memory.");
  return std::stoll(tool.substr(at + key.size()));
}

// A recipe for a real model, and the stages that read it.
struct RealRecipe {
  const char* name;
  const char* first;
  const char* scored;
  std::size_t plans;
};

// Plans it with this file and made-up text.
Finished plan_of(const RealRecipe& recipe, const std::string& file, std::int64_t memory_bytes) {
  const TinyProject project;
  project.write("manuals.txt", numbered_documents("package", "\n\n\n"));
  project.write("quotes.txt", numbered_documents("saying", "\n%\n"));
  std::vector<std::string> settings = {"memory_bytes=" + std::to_string(memory_bytes),
                                       "data.manuals.path=manuals.txt",
                                       "data.quotes.path=quotes.txt",
                                       std::string("stages.") + recipe.first + ".from=" + file,
                                       "stages.student.teacher=" + file,
                                       "stages.scores.models=[" + file + ", " + recipe.scored + "]"};
  std::vector<std::string> arguments = {"run", source() / "recipes" / recipe.name, "--dry-run", "--dtype",
                                        "fp32"};
  for (const auto& setting : settings) arguments.insert(arguments.end(), {"--set", setting});
  return project.run(arguments);
}

TEST(Gguf, OfTheRecipesForARealModelNeedsNoMoreMemoryThanIsAskedForBeforeItIsFetched) {
  RETORT_GGUF_OR_SKIP(file);
  const std::int64_t asked_bytes = asked_bytes_of_fetching();
  for (const RealRecipe& recipe :
       {RealRecipe{"smollm2.yaml", "pruned", "pruned, student, ce_only", 4},
        RealRecipe{"smollm2_sparse.yaml", "sparse", "sparse, student, ce_only", 4}}) {
    SCOPED_TRACE(recipe.name);
    const auto plenty = plan_of(recipe, file, 10 * asked_bytes);
    EXPECT_EQ(plenty.code, 0) << plenty.err;
    const auto totals_bytes = totals_of_plans(plenty.out);
    EXPECT_EQ(totals_bytes.size(), recipe.plans) << plenty.err;
    for (const double bytes : totals_bytes) EXPECT_LE(bytes, static_cast<double>(asked_bytes)) << plenty.err;
    // Of what a machine has left a run takes a little less.
    const auto least = plan_of(recipe, file, asked_bytes / 8 * 7);
    EXPECT_EQ(least.code, 0) << least.err;
    EXPECT_EQ(least.out.find("would not fit"), std::string::npos) << least.out;
  }
}

TEST(BadGguf, MayNotLackAPart) {
  auto first = sound_file();
  first.tensors.pop_back();
  first.number("split.no", 0);
  first.number("split.count", 2);
  first.number("split.tensors.count", 11);
  const TinyProject project;
  project.write("x-00001-of-00002.gguf", first.bytes());
  project.write_recipe({finetune_stage("./x-00001-of-00002.gguf")});
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"info", "x-00001-of-00002.gguf"},
        {"eval", "x-00001-of-00002.gguf", "--text", "text.txt", "--context", "16"},
        {"run", "recipe.yaml", "--run-dir", "deep/run"}})
    expect_refusal(project, arguments, 4, "file \"x-00002-of-00002.gguf\" is missing");
}

TEST(BadGguf, MayNotBeAbsent) {
  const TinyProject project;
  project.write_recipe({finetune_stage("./none.gguf")});
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"info", "none.gguf"},
        {"eval", "none.gguf", "--text", "text.txt", "--context", "16"},
        {"run", "recipe.yaml", "--run-dir", "deep/run"}})
    expect_refusal(project, arguments, 4, "none.gguf: no such file");
}

// A note that holds a token that is not text ends in JSON, too.
TEST(BadGguf, IsShownAsJsonWhateverItsTokensAre) {
  auto file = tiny_gguf_metadata();
  add_tiny_tensors(file);
  file.texts("tokenizer.ggml.tokens", {"a\xFF", "a\xFF"});
  const GgufProject project(file.bytes());
  const auto info = project.run({"info", "bad.gguf", "--json"});
  ASSERT_EQ(info.code, 0) << info.err;
  EXPECT_SAYS(base::Json::parse(info.out).at("notes").dump(), R"(the token \"a\\xff\" stands twice)");
}

}  // namespace
}  // namespace retort::test
