#pragma once
// A directory with all that a run needs, so small that a run takes a second: text, and the configuration of a
// model of 159 thousand parameters with the tokenizer of models/europa-5m.

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "cli/program.h"
#include "retort/base/json.h"
#include "support/temporary_directory.h"

namespace retort::test {

class TinyProject {
 public:
  TinyProject();

  std::filesystem::path path(const std::filesystem::path& name = {}) const { return directory_ / name; }
  void write(const std::filesystem::path& name, const std::string& content) const;
  /// Writes recipe.yaml with the source `text` and these stages, each in YAML's short form.
  void write_recipe(const std::vector<std::string>& stages) const;
  /// Runs the program here.
  Finished run(const std::vector<std::string>& arguments) const;
  Finished run_recipe(const std::vector<std::string>& more = {}) const;

 private:
  TemporaryDirectory directory_;
};

/// A stage called "born" that trains from random weights, two sequences at once unless `more` says otherwise.
std::string train_stage(int tokens, const std::string& more = "");
/// A finetune stage called "tuned" of four steps.
std::string finetune_stage(const std::string& from);
/// A copy of a sound model in the directory `name` of the project.
void copy_model(const TinyProject& project, const std::filesystem::path& name);

/// Contents of all files below a directory by their relative paths, without locks.
std::map<std::string, std::string> files_below(const std::filesystem::path& directory);
/// The lines of metrics.jsonl that are whole.
std::vector<base::Json> metrics_of(const std::filesystem::path& run_directory);
std::string weights_of(const std::filesystem::path& run_directory, const std::string& stage);

}  // namespace retort::test
