#pragma once
// Text for runs that a test makes, and an observer that keeps what it is told.

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "retort/base/error.h"
#include "retort/pipeline/pipeline.h"
#include "support/outside_data.h"
#include "support/temporary_directory.h"

namespace retort::test {

struct Told : record::Observer {
  void message(record::Level level, std::string_view text) override {
    (level == record::Level::warning ? warnings : messages).emplace_back(text);
  }
  bool has(const std::vector<std::string>& lines, const std::string& part) const {
    return std::any_of(lines.begin(), lines.end(),
                       [&](const auto& line) { return line.find(part) != std::string::npos; });
  }
  std::vector<std::string> messages, warnings;
};

class TrainedProject {
 public:
  TrainedProject() {
    std::ofstream text(directory_ / "text.txt");
    std::uint64_t state = 1;  // no two documents share a row of words
    for (int document = 0; document < 120; ++document) {
      text << "document " << document << ' ';
      for (int word = 0; word < 40; ++word)
        text << "word" << (state = (state * 75 + 74) % 65537) % 997 << ' ';
      text << "\n\n";
    }
    std::ofstream(directory_ / "config.json")
        << R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 16,
 "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 8,
 "vocab_size": 4096, "max_position_embeddings": 128, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
 "tie_word_embeddings": true, "hidden_act": "silu", "bos_token_id": 0, "eos_token_id": 0})";
  }

  base::Path path(const std::string& name) const { return directory_ / name; }
  static std::string model() { return (source() / "models" / "europa-5m").string(); }

  /// A source of the recipe, as a line of its section data.
  std::string source_line(const std::string& name, const std::string& held_out) const {
    return "  " + name + ": {path: " + path("text.txt").string() +
           ", separator: \"\\n\\n\", held_out: {every: " + held_out + "}}\n";
  }

  /// A recipe with the source "text" and these stages; `top` and `data` are lines of it.
  recipe::Recipe recipe(const std::vector<std::string>& stages, const std::string& top = "",
                        const std::string& data = "") const {
    std::string text = "version: 1\n" + top + "data:\n" + source_line("text", "10") + data + "stages:\n";
    for (const auto& stage : stages) text += "  - " + stage + "\n";
    return recipe::parse_recipe(text, "recipe.yaml");
  }

  /// A stage that trains a model of some thousand parameters beside its embedding.
  std::string train_stage(const std::string& name, const std::string& more = "") const {
    return "{name: " + name + ", kind: train, config: " + path("config.json").string() +
           ", tokenizer: " + model() + ", data: [text], tokens: 512, " + kPacking + more + "}";
  }

  pipeline::RunRequest request(bool dry_run = true) const {
    pipeline::RunRequest request;
    request.run_directory = path("run");
    request.dry_run = dry_run;
    request.command = {"retort", "run"};
    return request;
  }

  static constexpr const char* kPacking =
      "packing: {sequence_length: 64}, batch: {sequences: 2}, evaluate_tokens: 512";

 private:
  TemporaryDirectory directory_;
};

}  // namespace retort::test
