#pragma once
// A directory with text and a small model, and recipes that use them.

#include <fstream>
#include <string>
#include <vector>

#include "retort/architecture/hf_config.h"
#include "retort/model/weights.h"
#include "retort/pipeline/pipeline.h"
#include "support/outside_data.h"
#include "support/temporary_directory.h"

namespace retort::test {

class Project {
 public:
  static constexpr std::int64_t kHidden = 32, kWidth = 64;

  Project() {
    std::ofstream text(path("text.txt"));
    for (int document = 0; document < 200; ++document) {
      text << "document " << document << ": ";
      for (int word = 0; word < 60; ++word) text << "word" << (document * 31 + word * 7) % 89 << ' ';
      text << "\n\n";
    }
    save_model("model", 128);
  }

  std::filesystem::path path(const std::string& name) const { return directory_ / name; }
  std::filesystem::path run_directory() const { return path("run"); }

  /// Random weights, with the tokenizer of models/europa-5m.
  void save_model(const std::string& name, std::int64_t positions) const {
    architecture::Config config;
    config.vocab_size = 4096;
    config.hidden_size = kHidden;
    config.max_position_embeddings = positions;
    config.initializer_range = 0.1;
    config.tie_word_embeddings = true;
    config.bos_token_ids = {0};
    config.eos_token_ids = {0};
    config.blocks.assign(2, {architecture::Attention{4, 2, 8}, architecture::DenseMlp{kWidth}});
    model::save_model(model::random_weights(config, 1, at::kFloat, at::kCPU), path(name),
                      source() / "models" / "europa-5m", base::Json::object());
  }

  /// Stages in YAML's short form; MODEL stands for the model's directory.
  recipe::Recipe recipe_of(const std::vector<std::string>& stages, const std::string& settings = "") const {
    std::string text = "version: 1\n" + settings + "data:\n  text: {path: " + path("text.txt").string() +
                       ", separator: \"\\n\\n\", held_out: {every: 10}}\nstages:\n";
    for (auto stage : stages) {
      for (auto at = stage.find("MODEL"); at != std::string::npos; at = stage.find("MODEL"))
        stage.replace(at, 5, path("model").string());
      text += "  - " + stage + "\n";
    }
    return recipe::parse_recipe(text, "recipe.yaml");
  }

 private:
  TemporaryDirectory directory_;
};

inline const std::string kFinetune =
    "{name: tuned, kind: finetune, from: MODEL, data: [text], tokens: 128, packing: {sequence_length: 64}, "
    "batch: {sequences: 2}, recompute: always, evaluate_every_steps: 0}";

inline pipeline::RunRequest run_in(const std::filesystem::path& directory) {
  pipeline::RunRequest request;
  request.run_directory = directory;
  return request;
}

/// Everything that was said.
class Listener : public record::Observer {
 public:
  void message(record::Level, std::string_view text) override { said += std::string(text) + "\n"; }
  std::string said;
};

}  // namespace retort::test
