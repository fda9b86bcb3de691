#include <ATen/Parallel.h>
#include <torch/version.h>

#include "retort/architecture/counts.h"
#include "retort/architecture/hf_config.h"
#include "retort/base/error.h"
#include "retort/base/machine.h"
#include "retort/base/units.h"
#include "retort/comm/group.h"
#include "retort/data/source_files.h"
#include "retort/model/dtype.h"
#include "retort/ops/memory_meter.h"
#include "retort/pipeline/pipeline.h"
#include "retort/pipeline/stages.h"
#include "retort/record/provenance.h"
#include "retort/report/report.h"

namespace retort::pipeline {
namespace {

using recipe::StageKind;

// `auto` is resolved once: a run that goes on elsewhere computes as it began.
std::string resolved_dtype(const recipe::Recipe& recipe, const base::Path& run_directory, const at::Device& device) {
  if (recipe.dtype == "auto" && record::is_run_directory(run_directory))
    return record::read_run(run_directory).recipe.value("dtype", "auto");
  return model::dtype_name(model::parse_compute_dtype(recipe.dtype, device));
}

std::optional<base::Json> run_stage(const Context& context, const recipe::Stage& stage) {
  switch (stage.kind) {
    case StageKind::prune: return run_prune_stage(context, stage);
    case StageKind::sparsify: return run_sparsify_stage(context, stage);
    case StageKind::evaluate: return run_evaluate_stage(context, stage);
    case StageKind::train:
    case StageKind::finetune:
    case StageKind::distill: return run_train_stage(context, stage);
  }
  throw base::InternalError("a stage of no kind.");
}

// False: stopped on request.
bool work_on(const Context& context, const recipe::Stage& stage) {
  const double start = base::monotonic_seconds();
  auto result = run_stage(context, stage);
  if (!result) return false;
  if (!result->contains("seconds")) (*result)["seconds"] = base::monotonic_seconds() - start;
  const auto model = context.directory.model_directory(stage.name);
  if (std::filesystem::exists(model))
    (*result)["parameters"] = architecture::num_parameters(architecture::read_config(model));
  context.directory.write_result(stage.name, *result);
  return true;
}

// Text that is missing is said before the first stage begins, not hours into the run.
void check_sources(const recipe::Recipe& recipe) {
  for (const auto& source : recipe.data) data::expand_paths(source.name, source.paths);
}

void dry_run(const recipe::Recipe& recipe, record::Observer& observer) {
  check_sources(recipe);
  for (const auto& stage : recipe.stages) {
    const auto memory = describe_memory(recipe, stage);
    observer.message(record::Level::info,
                     base::join("stage ", stage.name, " (", recipe::name(stage.kind), "): ",
                                memory.empty() ? "memory is planned when its models are there" : "memory plan\n" + memory));
  }
}

std::string scores_of(const record::RunDirectory& directory, const recipe::Recipe& recipe) {
  std::string tables;
  for (const auto& stage : recipe.stages)
    if (stage.kind == StageKind::evaluate && directory.finished(stage.name))
      tables += report::scores_table(directory.result(stage.name));
  return tables;
}

}  // namespace

RunOutcome run(recipe::Recipe recipe, const RunRequest& request, record::Observer& observer) {
  ops::install_memory_meter();
  const auto device = model::parse_device(recipe.device);
  recipe.dtype = resolved_dtype(recipe, request.run_directory, device);
  if (!request.only_stage.empty()) (void)recipe.stage(request.only_stage);
  if (request.dry_run) {
    dry_run(recipe, observer);
    return {.finished = true, .stage = {}, .summary = {}, .report = {}};
  }
  check_sources(recipe);
  auto directory = record::RunDirectory::open(
      request.run_directory,
      {recipe::to_json(recipe), recipe::to_yaml(recipe),
       record::describe({.command = request.command, .torch_version = TORCH_VERSION, .threads = at::get_num_threads()})});
  record::Metrics metrics(directory.metrics_path());
  const auto group = comm::single_group();
  const Context context{recipe, directory, metrics, observer, *group, device, model::parse_compute_dtype(recipe.dtype, device)};
  observer.message(record::Level::info, base::join("computing in ", recipe.dtype, " on ", recipe.device, " with ",
                                                   at::get_num_threads(), " threads; run directory ",
                                                   directory.path().string()));
  RunOutcome outcome{.finished = true, .stage = {}, .summary = {}, .report = {}};
  for (const auto& stage : recipe.stages) {
    if (!request.only_stage.empty() && stage.name != request.only_stage) continue;
    outcome.stage = stage.name;
    if (directory.finished(stage.name)) {
      observer.message(record::Level::info, base::join("stage ", stage.name, ": finished before"));
      continue;
    }
    observer.message(record::Level::info, base::join("stage ", stage.name, " (", recipe::name(stage.kind), ")"));
    outcome.finished = work_on(context, stage);
    if (!outcome.finished) break;
    if (observer.stop_requested() && &stage != &recipe.stages.back()) {
      outcome.finished = false;
      break;
    }
  }
  report::write_report(directory.path());
  outcome.report = directory.report_path();
  outcome.summary = scores_of(directory, recipe);
  return outcome;
}

}  // namespace retort::pipeline
