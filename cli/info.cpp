#include <CLI/CLI.hpp>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/model_info.h"
#include "cli/print.h"
#include "retort/base/hash.h"
#include "retort/base/json_file.h"
#include "retort/base/printable.h"
#include "retort/io/model_directory.h"
#include "retort/io/recognise.h"
#include "retort/record/checkpoint_manifest.h"
#include "retort/record/keys.h"
#include "retort/record/run_files.h"

namespace retort::cli {
namespace {

using base::Json;
using base::Path;
namespace keys = record::keys;

bool is_file(const Path& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored);
}

// A damaged log costs what it said, and not the rest.
Json read_log(const std::function<Json()>& read, std::vector<std::string>& notes) try {
  Json log = read();
  return log.is_object() ? log : Json::object();
} catch (const base::Error& damage) {
  notes.emplace_back(damage.what());
  return Json::object();
}

Json describe_run(const Path& path) {
  const record::RunFiles run(path);
  const Json recipe = run.recipe();
  std::vector<std::string> notes;
  const Json provenance = read_log([&] { return run.provenance(); }, notes);
  Json stages = Json::object();
  for (const auto& [stage, options] : recipe.at(keys::kStages).items())
    stages[stage] = {{keys::kKind, options.value(keys::kKind, "")}, {"finished", false}};
  for (const auto& stage : run.finished_stages()) {
    if (!stages.contains(stage)) continue;  // a student of a select stage
    const Json result = read_log([&] { return run.result(stage); }, notes);
    stages[stage]["finished"] = true;
    for (const auto key : {keys::kParameters, keys::kSteps, keys::kTokens, keys::kSeconds, keys::kFinal})
      if (result.contains(key)) stages[stage][key] = result[key];
  }
  const Json starts = provenance.value(keys::kStarts, Json::array());
  return {{"kind", "run"},
          {"path", base::as_utf8(path.native())},
          {"stages", stages},
          {"starts", starts.size()},
          {"last_start", starts.empty() ? Json::object() : starts.back()},
          {"notes", notes}};
}

// A damaged manifest is shown as far as it can be read.
Json read_manifest(const Path& path, std::vector<std::string>& notes) try {
  return record::read_manifest(path);
} catch (const base::ModelError& damage) {
  notes.emplace_back(damage.what());
  return base::read_own_json(path / record::kManifest);
}

Json describe_checkpoint(const Path& path) try {
  std::vector<std::string> notes;
  const Json manifest = read_manifest(path, notes);
  Json files = Json::object();
  files[record::kManifest] = notes.empty() ? "good" : "damaged";
  for (const auto& [name, hash] : manifest.at("files").items()) {
    const Path file = path / Path(name).filename();
    files[name] = is_file(file) && base::hash_file(file) == hash ? "good" : "damaged";
  }
  return {{"kind", "checkpoint"},
          {"path", base::as_utf8(path.native())},
          {"step", manifest.at("step")},
          {"tokens", manifest.at("tokens")},
          {"seconds", manifest.at("seconds")},
          {"identity", manifest.at("identity")},
          {"files", files},
          {"notes", notes}};
} catch (const base::JsonFault& fault) {
  throw base::DataError(
      base::join(path.string(), ": manifest.json: byte ", fault.byte, ": ", fault.reason, "."));
}

[[noreturn]] void refuse_what_is_no_model(const Path& path) {
  std::error_code ignored;
  std::string there = io::what_is_there(path);
  if (there.empty() && !std::filesystem::exists(path, ignored))
    there = base::join("no such file or directory; ", io::how_to_get(path));
  if (there.empty())
    there =
        "expected a GGUF file or a directory with config.json (model), manifest.json (checkpoint) or "
        "recipe.json (run), found none of them";
  throw base::ModelError(base::join(path.string(), ": ", there, "."));
}

Json describe(const Path& path) try {
  if (record::RunFiles(path).holds_run()) return describe_run(path);
  if (is_file(path / "manifest.json")) return describe_checkpoint(path);
  if (!io::is_gguf(path) && !is_file(path / "config.json")) refuse_what_is_no_model(path);
  return describe_model(path);
} catch (const Json::exception& error) {
  throw base::DataError(base::join(path.string(), ": not what Retort writes (", error.what(), ")."));
}

}  // namespace

Action declare_info(CLI::App& app) {
  app.footer(
      "Examples:\n"
      "  retort info models/europa-5m\n"
      "  retort info SmolLM2-135M-Instruct.Q4_1.gguf\n"
      "  retort info runs/quickstart                   which stages are finished\n"
      "  retort info runs/quickstart/models/student --json\n"
      "  retort info runs/quickstart/checkpoints/student/step-00000050");
  struct Options {
    std::string path;
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  app.add_option("PATH", options->path, "Directory of a model, a checkpoint or a run, or a GGUF file")
      ->required();
  app.add_flag("--json", options->json, "Print JSON");
  return [options] {
    print(std::cout, describe(options->path), options->json);
    return base::ExitCode::ok;
  };
}

}  // namespace retort::cli
