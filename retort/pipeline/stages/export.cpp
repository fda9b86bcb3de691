// Stage export: a model in the form that another program loads, in the stage's own folder.
#include <ATen/ATen.h>

#include <algorithm>

#include "retort/base/error.h"
#include "retort/base/printable.h"
#include "retort/base/units.h"
#include "retort/pipeline/export.h"
#include "retort/pipeline/measured.h"
#include "retort/pipeline/stages.h"
#include "retort/publish/form.h"
#include "retort/record/keys.h"

namespace retort::pipeline {
namespace {

using recipe::Stage;
namespace keys = record::keys;

const publish::ExportOptions& options_of(const Stage& stage) {
  return std::get<publish::ExportOptions>(stage.options);
}

std::int64_t bytes_of(const base::Path& directory) {
  std::int64_t bytes = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory))
    if (entry.is_regular_file()) bytes += static_cast<std::int64_t>(entry.file_size());
  return bytes;
}

// What the program loads: a file, or the directory itself.
base::Path path_of(const base::Path& out, const std::string& model) {
  return model == "." ? out : out / base::Path(model);
}

// What the evaluations before it have found of the model.
std::string measured(const Context& context, const std::string& model) {
  std::string tables;
  for (const auto& stage : context.recipe.stages) {
    if (stage.kind != recipe::StageKind::evaluate || std::ranges::count(stage.models, model) == 0) continue;
    if (!context.directory.finished(stage.name)) continue;
    if (const auto result = context.directory.sound_result(stage.name)) tables += tables_of(*result, model);
  }
  return tables;
}

// Rank 0 alone: it is compared text by text, and the others have nothing to do.
base::Json run(const Context& context, const Stage& stage) {
  base::Json result;
  context.lead([&] {
    const auto out = context.directory.stage_directory(stage.name);
    ExportRequest request{.model = {}, .options = options_of(stage), .out = out};
    request.model.model = context.model_path(stage.from).string();
    request.model.device = context.recipe.device;
    request.measured = measured(context, stage.from);
    request.model.available_memory = [&] { return context.place.available_bytes; };
    const auto certificate = export_to(request, context.observer);
    result = {{keys::kProgram, certificate.at("program")},
              {keys::kType, certificate.at("type")},
              {keys::kFile, base::as_utf8(path_of(out, certificate.at("model")).native())},
              {keys::kBytes, bytes_of(out)},
              {keys::kLoads, certificate.at("seen")},
              {keys::kChecks, certificate.at("checks")}};
  });
  return result;
}

ResolvedStage resolve(const PlanContext& context, const Stage& stage) {
  ResolvedStage resolved{.check = [&stage](const PlanContext& known) {
    in_stage(stage, [&] {
      (void)publish::foreseen_form(options_of(stage), known.models.config_of_line(stage.from), false,
                                   known.models.tokenizer_of_line(stage.from));
    });
  }};
  if (!context.models.config(stage.from)) return resolved;
  resolved.run = [&stage](const Context& running) { return run(running, stage); };
  return resolved;
}

std::string summary(const base::Json& result) {
  return base::join("for ", result.at(keys::kProgram).get<std::string>(), ": ",
                    result.at(keys::kFile).get<std::string>(), ", ",
                    base::human_bytes(result.at(keys::kBytes).get<std::uint64_t>()), "\n");
}

}  // namespace

const StageFunctions kExporting = {.resolve = resolve, .summary = summary};

}  // namespace retort::pipeline
