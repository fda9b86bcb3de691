#include <ATen/Parallel.h>
#include <torch/version.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "retort/architecture/counts.h"
#include "retort/architecture/hf_config.h"
#include "retort/base/error.h"
#include "retort/base/machine.h"
#include "retort/base/units.h"
#include "retort/bench/matrix_product.h"
#include "retort/comm/flight.h"
#include "retort/comm/group.h"
#include "retort/comm/lead.h"
#include "retort/kernels/cuda/kernels.h"
#include "retort/model/dtype.h"
#include "retort/ops/device_memory.h"
#include "retort/ops/tensor_allocator.h"
#include "retort/ops/threads.h"
#include "retort/pipeline/compute_dtype.h"
#include "retort/pipeline/dry_run.h"
#include "retort/pipeline/exchanged.h"
#include "retort/pipeline/finished_stages.h"
#include "retort/pipeline/float32_products.h"
#include "retort/pipeline/generated_text.h"
#include "retort/pipeline/input_files.h"
#include "retort/pipeline/own_device.h"
#include "retort/pipeline/pipeline.h"
#include "retort/pipeline/preflight.h"
#include "retort/pipeline/resolved_as_begun.h"
#include "retort/pipeline/same_start.h"
#include "retort/pipeline/stages.h"
#include "retort/pipeline/torch_errors.h"
#include "retort/pipeline/widths.h"
#include "retort/record/keys.h"
#include "retort/record/own_directory.h"
#include "retort/record/provenance.h"
#include "retort/record/scratch.h"
#include "retort/record/stop_file.h"
#include "retort/record/stopped.h"
#include "retort/report/report.h"

namespace retort::pipeline {
namespace {

namespace keys = record::keys;

// A larger budget takes what a smaller one measured, checkpoints are resumed on any layout, and a profile
// changes nothing that is computed.
const std::vector<std::string>& open_keys() {
  static const std::vector<std::string> keys{"search.budget_tokens", "shard.student_ranks",
                                             "shard.teacher_ranks", "step_profile"};
  return keys;
}

// Says what a search left of its room, and of a process that is a tenth above the plan, why.
std::string why_off(const base::Json& result) {
  constexpr double kMuch = 0.1;
  const auto bytes = [&](record::Key key) { return result.value(std::string(key), std::int64_t{0}); };
  const auto human = [](std::int64_t count) { return base::human_bytes(static_cast<std::uint64_t>(count)); };
  std::string why;
  if (const auto unused = bytes(keys::kMemoryUnusedBytes); unused > 0)
    why +=
        base::join("; ", human(unused), " of the plan were room for candidates that the search did not fill");
  const auto planned = bytes(keys::kProcessPlannedBytes), peak = bytes(keys::kProcessPeakBytes);
  const auto waiting = ops::peak_held_bytes() - bytes(keys::kPeakTensorBytes);
  if (planned > 0 && static_cast<double>(peak) > (1 + kMuch) * static_cast<double>(planned))
    why += base::join("; above the plan are ", waiting > 0 ? human(waiting) + " that wait for tensors, " : "",
                      "earlier stages, and what libraries took as they were used");
  return why;
}

void say_memory(const Context& context, const recipe::Stage& stage, const base::Json& result) {
  const auto human = [&](record::Key key) { return base::human_bytes(result.at(key).get<std::uint64_t>()); };
  const auto planned = [&](record::Key key, const char* of) {
    return result.contains(key) ? base::join(" (planned ", human(key), of, ")") : std::string();
  };
  context.observer.message(
      record::Level::info,
      base::join(stage.name, ": peak of tensors ", human(keys::kPeakTensorBytes),
                 planned(keys::kMemoryPlannedBytes, ""), ", of the process so far ",
                 human(keys::kProcessPeakBytes),
                 planned(keys::kProcessPlannedBytes, " with libraries and text"), why_off(result)));
}

void write_result(const Context& context, const recipe::Stage& stage, base::Json result,
                  const base::Json& inputs, double seconds, const Exchanged& exchanged, std::int64_t beside) {
  result[keys::kInputFiles] = inputs;
  if (!result.contains(keys::kSeconds)) result[keys::kSeconds] = seconds;
  if (!result.contains(keys::kCollectives) && context.group.size() > 1)
    result[keys::kCollectives] = exchanged.json();
  result[keys::kPeakTensorBytes] = ops::peak_tensor_bytes(context.place.device);
  result[keys::kProcessPeakBytes] = ops::process_peak_bytes();
  if (result.contains(keys::kMemoryPlannedBytes) && context.place.device.is_cpu())
    result[keys::kProcessPlannedBytes] = result.at(keys::kMemoryPlannedBytes).get<std::int64_t>() + beside;
  const auto model = context.directory.model_directory(stage.name);
  if (std::filesystem::exists(model))
    result[keys::kParameters] = architecture::num_parameters(architecture::read_config(model));
  context.directory.write_result(stage.name, result);
  say_memory(context, stage, result);
}

// Text that a model of the run writes is looked at as other text is before the run.
void write_texts(const Context& context, const RunRequest& request, const recipe::Stage& stage,
                 const ResolvedStage* before) {
  if (!write_texts_of(context, stage)) return;
  context.lead([&] {
    const auto models = KnownModels(context.recipe, record::RunFiles(context.directory.path())).as_made();
    check_written_text(plan_context(context, models), request, stage, before);
  });
}

// `beside`: what the process had beside tensors before the first stage.  False: stopped on request.
bool work_on(const Context& context, const RunRequest& request, const recipe::Stage& stage,
             const CheckedStages& checked, std::int64_t beside) try {
  const auto found = checked.find(stage.name);
  const auto* before = found == checked.end() ? nullptr : &found->second;
  write_texts(context, request, stage, before);
  const double start = base::monotonic_seconds();
  base::Json result, inputs;
  context.lead([&] {
    inputs = input_files(context.recipe, stage);
    require_same_inputs(stage, inputs, files_read(context.directory));
    require_sound_inputs(stage, context.recipe, context.directory, record::Look::contents);
    note_inputs(context.directory, stage, inputs);
  });
  const Exchanged exchanged({{"all ranks", &context.group}});
  ops::reset_peak_tensor_bytes(context.place.device);
  result = resolved(context, stage, before && before->run ? before : nullptr).run(context);
  context.lead([&] {
    write_result(context, stage, std::move(result), inputs, base::monotonic_seconds() - start, exchanged,
                 beside);
  });
  return true;
} catch (const record::StoppedError& stopped) {
  context.observer.message(record::Level::info, stopped.what());
  return false;
}

std::string summary_of(const record::RunDirectory& directory, const recipe::Recipe& recipe) {
  std::string text;
  for (const auto& stage : recipe.stages)
    if (const auto summary = functions_of(stage.kind).summary; summary && directory.finished(stage.name))
      if (const auto result = directory.sound_result(stage.name)) text += summary(*result);
  return text;
}

void finish(const Context& context, RunOutcome& outcome) {
  report::write_report(context.directory.path());
  outcome.report = context.directory.report_path();
  outcome.summary = summary_of(context.directory, context.recipe) + report::outcome(context.directory.path());
}

RunOutcome work_through(const Context& context, const RunRequest& request, const CheckedStages& checked) {
  RunOutcome outcome{.finished = true, .stage = {}, .summary = {}, .report = {}};
  const auto beside = ops::bytes_beside_tensors();
  const auto& stages = context.recipe.stages;
  for (const auto& stage : stages) {
    if (!request.only_stage.empty() && stage.name != request.only_stage) continue;
    outcome.stage = stage.name;
    if (context.agreed(context.directory.finished(stage.name))) {
      context.observer.message(record::Level::info, base::join("stage ", stage.name, ": finished before"));
      continue;
    }
    context.observer.message(record::Level::info,
                             base::join("stage ", stage.name, " (", recipe::name(stage.kind), ")"));
    context.group.job().at(0, base::join("stage ", stage.name));
    in_stage(stage, [&] { outcome.finished = work_on(context, request, stage, checked, beside); });
    if (outcome.finished && context.agreed(context.observer.stop_requested()))
      outcome.finished = &stage == &stages.back();
    if (!outcome.finished) break;
  }
  context.lead([&] { finish(context, outcome); });
  return outcome;
}

std::string rate(double flops) {
  return base::join(std::llround(flops / 1e9), " GFLOP/s");
}

void say_what_is_used(const recipe::Recipe& recipe, const Place& place, const ComputeDtype& dtype,
                      record::Observer& observer) {
  const auto& ranks = place.ranks;
  if (const auto& measured = dtype.measured) {
    const auto& shape = measured->shape;
    observer.message(record::Level::info,
                     base::join("dtype auto: a product of ", shape.rows, " x ", shape.inner, " by ",
                                shape.inner, " x ", shape.columns, " runs at ", rate(measured->bf16),
                                " in bf16 and ", rate(measured->fp32), " in fp32"));
  }
  observer.message(
      record::Level::info,
      base::join("computing in ", dtype.name, " on ", recipe.device, " with ",
                 ranks.all > 1 ? base::join(ranks.all, " ranks of ") : "", at::get_num_threads(),
                 " threads and ", base::human_bytes(static_cast<std::uint64_t>(place.available_bytes)),
                 " of memory",
                 ranks.all == ranks.of_memory         ? ""
                 : ranks.of_memory < ranks.of_machine ? " for each"
                                                      : " on each machine"));
  observer.message(record::Level::info, base::join("plans of memory count tensors; ", beside_tensors()));
  if (!place.device.is_cpu())
    observer.message(record::Level::info,
                     base::join("on ", recipe.device, " norms, gates, losses and updates are ",
                                kernels::cuda::describe_kernels(place.device)));
}

base::Json provenance_of_start(const RunRequest& request, const ComputeDtype& dtype,
                               const Float32Choice& float32, int ranks) {
  auto start = record::describe(
      {.command = request.command, .torch_version = TORCH_VERSION, .threads = at::get_num_threads()});
  start["compute_dtype"] = dtype.name;
  if (ranks > 1) start["ranks"] = ranks;
  if (dtype.measured) start["dtype_auto"] = to_json(*dtype.measured);
  add_to_start(start, float32);
  return start;
}

// Measured on rank 0.
ComputeDtype agreed_dtype(const recipe::Recipe& recipe, const RunRequest& request, at::Device device,
                          comm::Group& group) {
  ComputeDtype chosen;
  comm::lead(group, [&] { chosen = compute_dtype(recipe, request.run_directory, device); });
  group.share(chosen.name);
  return chosen;
}

record::RunStart start_of(const recipe::Recipe& recipe, const RunRequest& request, const ComputeDtype& dtype,
                          const Float32Choice& float32, const comm::Group& group) {
  return {resolved_as_begun(recipe, request.run_directory), recipe::to_yaml(recipe),
          provenance_of_start(request, dtype, float32, group.size()), open_keys(),
          recipe::former_stage_keys()};
}

record::RunDirectory entered(const recipe::Recipe& recipe, const RunRequest& request,
                             const ComputeDtype& dtype, const Float32Choice& float32,
                             record::Observer& observer, comm::Group& group) {
  std::optional<record::RunDirectory> directory;
  comm::lead(group, [&] {
    directory =
        record::RunDirectory::open(request.run_directory, start_of(recipe, request, dtype, float32, group));
  });
  if (!directory) return record::RunDirectory::opened_by_another(request.run_directory);
  observer.message(record::Level::info, base::join("run directory ", directory->path().string()));
  for (const auto& warning : directory->warnings()) observer.message(record::Level::warning, warning);
  return std::move(*directory);
}

// On the machine or the accelerator that has least: what one rank refuses all do.
std::int64_t agreed_available_bytes(const recipe::Recipe& recipe, const RunRequest& request,
                                    const OwnDevice& device, comm::Group& group) {
  if (recipe.memory_bytes > 0) return recipe.memory_bytes;
  const auto own = available_bytes(request.available_memory, device.device) / device.ranks;
  return std::ranges::min(group.all_values(own));
}

// Of the machines themselves, in whose memory lies what accelerators have no room for.
std::int64_t agreed_machine_bytes(const RunRequest& request, comm::Group& group) {
  return std::ranges::min(group.all_values(available_bytes(request.available_memory, at::kCPU)));
}

// What this rank does is noted in the run directory from here on.  Says what ended the job before, if it did
// not end by itself.
void record_flight(const record::RunDirectory& directory, record::Observer& observer, comm::Group& group) {
  if (group.size() == 1) return;
  const auto flights = directory.flights_path();
  comm::lead(group, [&] {
    if (const auto damaged = comm::damaged_flights(flights); !damaged.empty())
      observer.message(record::Level::warning,
                       base::join("records of the run before are damaged and left out: ", damaged));
    const auto before = comm::autopsy(comm::read_flights(flights));
    if (!before.clean)
      observer.message(record::Level::warning, base::join("the run before ended early: ", before.sentence));
    record::remove_ours(flights, comm::is_flight_name);
    base::make_directories(flights);
  });
  group.agree([&] {
    group.job().record(
        std::make_shared<comm::Flight>(comm::flight_path(flights, group.rank()), group.rank(), group.size()));
  });
}

RunOutcome prepare_and_run(recipe::Recipe recipe, const RunRequest& request, record::Observer& observer,
                           comm::Group& group) {
  ops::install_tensor_allocator();
  place_generated_texts(recipe, record::RunFiles(request.run_directory));
  require_same_start(recipe, group);
  at::Device device = at::kCPU;
  group.agree([&] {  // machines may differ
    device = model::parse_device(recipe.device);
    if (!request.only_stage.empty()) (void)recipe.stage(request.only_stage);
    if (group.rank() != 0) return;
    record::require_own_or_empty(request.run_directory);
    check_finished_stages(recipe, record::RunFiles(request.run_directory), request.only_stage, observer);
  });
  const auto own = own_device(device, group);
  device = own.device;
  const auto available = agreed_available_bytes(recipe, request, own, group);
  const Place place{device, shard::count_ranks(group, device), available,
                    device.is_cpu() ? available : agreed_machine_bytes(request, group)};
  ops::limit_waiting_blocks(place.machine_bytes / place.ranks.of_machine);
  const auto float32 = settle_float32_products(request.run_directory, device, observer, group);
  const auto chosen = agreed_dtype(recipe, request, device, group);
  recipe.dtype = chosen.name;
  const auto dtype = model::parse_compute_dtype(chosen.name);
  const KnownModels models(recipe, record::RunFiles(request.run_directory));
  const PlanContext planned{recipe, models, observer, dtype, place};
  std::string plans;
  CheckedStages stages;  // of rank 0
  comm::lead(group, [&] {
    settle_widths(recipe, models);
    stages = preflight(planned, request);
    say_what_is_used(recipe, place, chosen, observer);
    if (!request.dry_run) return;
    record::RunDirectory::check(request.run_directory, start_of(recipe, request, chosen, float32, group));
    plans = dry_run(planned, stages, request.only_stage);
  });
  share_widths(recipe, group);
  if (request.dry_run) return {.finished = true, .stage = {}, .summary = plans, .report = {}};
  auto directory = entered(recipe, request, chosen, float32, observer, group);
  try {
    if (group.size() > 1) require_same_directory(request.run_directory, group);
    record_flight(directory, observer, group);
    std::optional<record::Metrics> metrics;
    std::optional<record::StopFile> stop_file;
    comm::lead(group, [&] {
      metrics.emplace(directory.metrics_path());
      stop_file.emplace(directory.stop_path(), observer);
    });
    record::Observer& stoppable = stop_file ? *stop_file : observer;
    return work_through({recipe, directory, metrics ? &*metrics : nullptr, stoppable, group, dtype, place},
                        request, stages);
  } catch (...) {
    if (group.rank() == 0)
      directory.discard_if_nothing_was_made();  // else a corrected recipe would be refused here
    throw;
  }
}

}  // namespace

RunOutcome run(recipe::Recipe recipe, const RunRequest& request, record::Observer& observer) {
  RunOutcome outcome;
  const auto alone = comm::single_group();
  auto& group = request.group ? *request.group : *alone;
  translate_torch_errors([&] { outcome = prepare_and_run(std::move(recipe), request, observer, group); });
  return outcome;
}

}  // namespace retort::pipeline
