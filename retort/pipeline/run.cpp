#include <ATen/Parallel.h>
#include <torch/version.h>

#include <cmath>

#include "retort/architecture/counts.h"
#include "retort/architecture/hf_config.h"
#include "retort/base/error.h"
#include "retort/base/machine.h"
#include "retort/base/units.h"
#include "retort/comm/group.h"
#include "retort/model/dtype.h"
#include "retort/ops/tensor_allocator.h"
#include "retort/pipeline/compute_dtype.h"
#include "retort/pipeline/pipeline.h"
#include "retort/pipeline/preflight.h"
#include "retort/pipeline/sizing.h"
#include "retort/pipeline/stages.h"
#include "retort/pipeline/torch_errors.h"
#include "retort/record/keys.h"
#include "retort/record/provenance.h"
#include "retort/record/stopped.h"
#include "retort/report/report.h"

namespace retort::pipeline {
namespace {

// A larger budget takes what a smaller one measured.
constexpr const char* kOpenKey = "search.budget_tokens";

// A run that an earlier version began lacks the keys that were added since: they have their defaults.
base::Json resolved_as_begun(const recipe::Recipe& recipe, const base::Path& run_directory) {
  const auto resolved = recipe::to_json(recipe);
  const record::RunFiles run(run_directory);
  if (!run.holds_run()) return resolved;
  try {
    const auto begun = recipe::read_recipe(run.recipe_yaml_path());
    if (recipe::to_json(begun) == resolved) return run.recipe();
  } catch (const base::Error&) {  // damaged: entering the directory says so
  }
  return resolved;
}

// False: stopped on request.
bool work_on(const Context& context, const recipe::Stage& stage) {
  const double start = base::monotonic_seconds();
  base::Json result;
  ops::reset_peak_tensor_bytes();
  try {
    result = functions_of(stage.kind).run(context, stage);
  } catch (const record::StoppedError& stopped) {
    context.observer.message(record::Level::info, stopped.what());
    return false;
  }
  namespace keys = record::keys;
  if (!result.contains(keys::kSeconds)) result[keys::kSeconds] = base::monotonic_seconds() - start;
  result[keys::kPeakTensorBytes] = ops::peak_tensor_bytes();
  result[keys::kProcessPeakBytes] = ops::process_peak_bytes();
  const auto model = context.directory.model_directory(stage.name);
  if (std::filesystem::exists(model))
    result[keys::kParameters] = architecture::num_parameters(architecture::read_config(model));
  context.directory.write_result(stage.name, result);
  return true;
}

void dry_run(const PlanContext& context) {
  for (const auto& stage : context.recipe.stages) {
    const auto memory = functions_of(stage.kind).plan(context, stage);
    context.observer.message(record::Level::info,
                             base::join("stage ", stage.name, " (", recipe::name(stage.kind), "): ",
                                        memory ? "memory plan\n" + shard::describe(*memory)
                                               : "memory is planned when its models are there"));
  }
}

std::string summary_of(const record::RunDirectory& directory, const recipe::Recipe& recipe) {
  std::string text;
  for (const auto& stage : recipe.stages)
    if (const auto summary = functions_of(stage.kind).summary; summary && directory.finished(stage.name))
      text += summary(directory.result(stage.name));
  return text;
}

RunOutcome work_through(const Context& context, const RunRequest& request) {
  RunOutcome outcome{.finished = true, .stage = {}, .summary = {}, .report = {}};
  const auto& stages = context.recipe.stages;
  for (const auto& stage : stages) {
    if (!request.only_stage.empty() && stage.name != request.only_stage) continue;
    outcome.stage = stage.name;
    if (context.directory.finished(stage.name)) {
      context.observer.message(record::Level::info, base::join("stage ", stage.name, ": finished before"));
      continue;
    }
    context.observer.message(record::Level::info,
                             base::join("stage ", stage.name, " (", recipe::name(stage.kind), ")"));
    outcome.finished = work_on(context, stage);
    if (outcome.finished && context.observer.stop_requested()) outcome.finished = &stage == &stages.back();
    if (!outcome.finished) break;
  }
  report::write_report(context.directory.path());
  outcome.report = context.directory.report_path();
  outcome.summary = summary_of(context.directory, context.recipe);
  return outcome;
}

std::string rate(double flops) {
  return base::join(std::llround(flops / 1e9), " GFLOP/s");
}

void say_what_is_used(const recipe::Recipe& recipe, const ComputeDtype& dtype, std::int64_t available_bytes,
                      record::Observer& observer) {
  if (const auto& measured = dtype.measured) {
    const auto& shape = measured->shape;
    observer.message(record::Level::info,
                     base::join("dtype auto: a product of ", shape.rows, " x ", shape.inner, " by ",
                                shape.inner, " x ", shape.columns, " runs at ", rate(measured->bf16),
                                " in bf16 and ", rate(measured->fp32), " in fp32"));
  }
  observer.message(record::Level::info,
                   base::join("computing in ", dtype.name, " on ", recipe.device, " with ",
                              at::get_num_threads(), " threads and ",
                              base::human_bytes(static_cast<std::uint64_t>(available_bytes)), " of memory"));
}

base::Json provenance_of_start(const RunRequest& request, const ComputeDtype& dtype) {
  auto start = record::describe(
      {.command = request.command, .torch_version = TORCH_VERSION, .threads = at::get_num_threads()});
  start["compute_dtype"] = dtype.name;
  if (dtype.measured) start["dtype_auto"] = to_json(*dtype.measured);
  return start;
}

RunOutcome prepare_and_run(recipe::Recipe recipe, const RunRequest& request, record::Observer& observer) {
  ops::install_tensor_allocator();
  const auto device = model::parse_device(recipe.device);
  const auto available =
      recipe.memory_bytes > 0 ? recipe.memory_bytes : available_bytes(request.available_memory);
  if (!request.only_stage.empty()) (void)recipe.stage(request.only_stage);
  const auto chosen = compute_dtype(recipe, request.run_directory, device);
  recipe.dtype = chosen.name;
  const auto dtype = model::parse_compute_dtype(chosen.name);
  const KnownModels models(recipe, record::RunFiles(request.run_directory));
  settle_widths(recipe, models, chosen.name, device, observer);
  const PlanContext planned{recipe, models, observer, device, dtype, available};
  preflight(planned, request);
  say_what_is_used(recipe, chosen, available, observer);
  if (request.dry_run) {
    dry_run(planned);
    return {.finished = true, .stage = {}, .summary = {}, .report = {}};
  }
  auto directory = record::RunDirectory::open(
      request.run_directory, {resolved_as_begun(recipe, request.run_directory), recipe::to_yaml(recipe),
                              provenance_of_start(request, chosen), kOpenKey});
  observer.message(record::Level::info, base::join("run directory ", directory.path().string()));
  if (!directory.lock_warning().empty()) observer.message(record::Level::warning, directory.lock_warning());
  record::Metrics metrics(directory.metrics_path());
  const auto group = comm::single_group();
  const Context context{recipe, directory, metrics, observer, *group, device, dtype, available};
  try {
    return work_through(context, request);
  } catch (...) {
    directory.discard_if_nothing_was_made();  // else a corrected recipe would be refused here
    throw;
  }
}

}  // namespace

RunOutcome run(recipe::Recipe recipe, const RunRequest& request, record::Observer& observer) {
  RunOutcome outcome;
  translate_torch_errors([&] { outcome = prepare_and_run(std::move(recipe), request, observer); });
  return outcome;
}

}  // namespace retort::pipeline
