#include "cli/tiny_project.h"

#include <fstream>

#include "retort/base/files.h"
#include "support/outside_data.h"

namespace retort::test {
namespace {

namespace fs = std::filesystem;

constexpr const char* kConfig =
    R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 32, "intermediate_size": 64,
 "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "vocab_size": 4096,
 "max_position_embeddings": 128, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": true,
 "hidden_act": "silu", "bos_token_id": 0, "eos_token_id": 0, "initializer_range": 0.1})";

// Words in an order that no line repeats.
std::string made_text() {
  const char* words[] = {"the",     "package", "system", "file", "of", "a",   "user", "and",   "to",
                         "install", "debian",  "can",    "be",   "is", "run", "with", "server"};
  std::string text;
  std::uint32_t state = 1;
  for (int document = 0; document < 200; ++document) {
    for (int word = 0; word < 60; ++word) {
      state = state * 1664525U + 1013904223U;
      text += std::string(words[(state >> 16) % std::size(words)]) + ' ';
    }
    text += "\n\n";
  }
  return text;
}

}  // namespace

TinyProject::TinyProject() {
  write("text.txt", made_text());
  write("config.json", kConfig);
  fs::create_directory_symlink(source() / "models", path("models"));
}

void TinyProject::write(const fs::path& name, const std::string& content) const {
  std::ofstream(path(name), std::ios::binary) << content;
}

void TinyProject::write_recipe(const std::vector<std::string>& stages) const {
  std::string text =
      "version: 1\ndata:\n  text: {path: text.txt, separator: \"\\n\\n\", held_out: {every: 10}}\nstages:\n";
  for (const auto& stage : stages) text += "  - " + stage + "\n";
  write("recipe.yaml", text);
}

Finished TinyProject::run(const std::vector<std::string>& arguments) const {
  return test::run(arguments, "", path());
}

Finished TinyProject::run_recipe(const std::vector<std::string>& more) const {
  std::vector<std::string> arguments{"run", "recipe.yaml", "--run-dir", "run"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run(arguments);
}

std::string train_stage(int tokens, const std::string& more) {
  return "{name: born, kind: train, config: config.json, tokenizer: models/europa-5m, data: [text], "
         "tokens: " +
         std::to_string(tokens) +
         ", packing: {sequence_length: 64}, optim: {lr: 3.0e-3}, evaluate_tokens: 512" +
         (more.find("batch:") == std::string::npos ? ", batch: {sequences: 2}" : "") + more + "}";
}

std::string finetune_stage(const std::string& from) {
  return "{name: tuned, kind: finetune, from: " + from +
         ", data: [text], tokens: 512, packing: {sequence_length: 64}, batch: {sequences: 2}, "
         "evaluate_tokens: 256}";
}

void copy_model(const TinyProject& project, const fs::path& name) {
  static const TinyProject made;
  const fs::path model = made.path("run/models/born");
  if (!fs::exists(model)) {
    made.write_recipe({train_stage(128)});
    if (made.run_recipe().code != 0) throw std::runtime_error("the model for the tests cannot be made");
  }
  fs::copy(model, project.path(name), fs::copy_options::recursive);
}

std::map<std::string, std::string> files_below(const fs::path& directory) {
  std::map<std::string, std::string> files;
  if (!fs::exists(directory)) return files;
  for (const auto& entry : fs::recursive_directory_iterator(directory))
    if (entry.path().filename() != "lock")
      files[entry.path().lexically_relative(directory)] =
          entry.is_regular_file() ? base::read_file(entry.path()) : "";
  return files;
}

std::vector<base::Json> metrics_of(const fs::path& run_directory) {
  std::vector<base::Json> lines;
  std::ifstream in(run_directory / "metrics.jsonl");
  for (std::string line; std::getline(in, line) && !in.eof();) lines.push_back(base::Json::parse(line));
  return lines;
}

std::string weights_of(const fs::path& run_directory, const std::string& stage) {
  return base::read_file(run_directory / "models" / stage / "model.safetensors");
}

}  // namespace retort::test
