// Time and memory of one distillation step (0.25 CE + KL at T = 3 + SquareHead, AdamW) with random weights;
// the shapes are those of baseline.py, which does the same with transformers and PyTorch.  Prints one JSON
// object.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <CLI/CLI.hpp>
#include <array>
#include <atomic>
#include <chrono>
#include <fstream>
#include <iostream>
#include <map>
#include <optional>
#include <thread>

#include "benchmarks/distill_step/trace.h"
#include "retort/architecture/counts.h"
#include "retort/base/error.h"
#include "retort/base/files.h"
#include "retort/base/json.h"
#include "retort/base/machine.h"
#include "retort/bench/matrix_product.h"
#include "retort/comm/launch/launch.h"
#include "retort/comm/shared/local_ranks.h"
#include "retort/loss/chunk.h"
#include "retort/model/dtype.h"
#include "retort/ops/device_memory.h"
#include "retort/ops/operation_clock.h"
#include "retort/ops/optimizer_step.h"
#include "retort/ops/tensor_allocator.h"
#include "retort/shard/engine.h"
#include "retort/shard/memory_plan.h"

namespace {

using namespace retort;

struct Settings {
  std::string dtype = "auto", device_name = "cpu";
  std::int64_t hidden = 512, vocab = 32000, heads = 8, kv_heads = 4, teacher_blocks = 8, teacher_width = 1408,
               student_blocks = 5, student_width = 1024, sequences = 4, length = 512, steps = 5,
               documents = 1, wave = 1, head_rows = 0, ranks = 1, shard = 0;
  bool keep = false, no_overlap = false, logits_only = false, no_memory = false;
  std::string trace;

  at::Device device() const { return model::parse_device(device_name); }
};

architecture::Config config_of(const Settings& s, std::int64_t blocks, std::int64_t width) {
  architecture::Config config;
  config.vocab_size = s.vocab;
  config.hidden_size = s.hidden;
  config.max_position_embeddings = s.length;
  config.tie_word_embeddings = true;
  config.blocks.assign(
      static_cast<std::size_t>(blocks),
      {architecture::Attention{s.heads, s.kv_heads, s.hidden / s.heads}, architecture::DenseMlp{width}});
  return config;
}

shard::MicroBatch random_batch(const Settings& s) {
  const auto tokens = s.sequences * s.length;
  shard::MicroBatch batch{.ids_N = at::randint(s.vocab, {tokens}, at::kLong).to(s.device()),
                          .targets_N = at::randint(s.vocab, {tokens}, at::kLong).to(s.device()),
                          .bounds = {},
                          .starts = {},
                          .num_targets = tokens};
  for (std::int64_t i = 0; i <= s.sequences; ++i) batch.bounds.push_back(i * s.length);
  for (std::int64_t i = 0; i <= s.sequences * s.documents; ++i)
    batch.starts.push_back(i * s.length / s.documents);
  return batch;
}

// This rank's sequences of the step.
shard::MicroBatch own_batch(const Settings& s, const comm::Group& group) {
  base::require<base::UsageError>(s.sequences % group.size() == 0, "--sequences: expected a multiple of the ",
                                  group.size(), " ranks, found ", s.sequences, ".");
  Settings own = s;
  own.sequences = s.sequences / group.size();
  at::manual_seed(static_cast<std::uint64_t>(group.rank()) + 1);
  return random_batch(own);
}

// Memory of a process, of which what it shares with others counts in parts; the largest of what was seen.
class ProportionalPeak {
 public:
  ProportionalPeak() : thread_([this](const std::stop_token& stop) { watch(stop); }) {}
  std::int64_t bytes() const { return peak_bytes_; }

 private:
  void watch(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      std::ifstream file("/proc/self/smaps_rollup");
      for (std::string word; file >> word;)
        if (std::int64_t kilobytes = 0; word == "Pss:" && file >> kilobytes)
          peak_bytes_ = std::max<std::int64_t>(peak_bytes_, 1024 * kilobytes);
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  }
  std::atomic<std::int64_t> peak_bytes_ = 0;
  std::jthread thread_;
};

struct Models {
  shard::Groups student_groups, teacher_groups;
  std::unique_ptr<shard::Parameters> student, teacher;
};

Models models_of(const Settings& s, at::ScalarType dtype, comm::Group& group) {
  const auto student = model::random_source(config_of(s, s.student_blocks, s.student_width), 1);
  const auto teacher = model::random_source(config_of(s, s.teacher_blocks, s.teacher_width), 2);
  if (group.size() == 1)
    return {.student_groups = {},
            .teacher_groups = {},
            .student = shard::resident_parameters(model::collected(student, at::kFloat, s.device()),
                                                  shard::Use::trained, dtype),
            .teacher = shard::resident_parameters(model::collected(teacher, dtype, s.device()),
                                                  shard::Use::frozen, dtype)};
  Models models{shard::make_groups(group, s.shard), shard::make_groups(group, s.shard), {}, {}};
  models.student_groups.ahead = models.teacher_groups.ahead = !s.no_overlap;
  models.student =
      shard::sharded_parameters(student, shard::Use::trained, dtype, s.device(), models.student_groups);
  models.teacher =
      shard::sharded_parameters(teacher, shard::Use::frozen, dtype, s.device(), models.teacher_groups);
  return models;
}

// All groups of which calls are made.
std::vector<comm::Group*> groups_of(comm::Group& world, const Models& models) {
  std::vector<comm::Group*> all{&world};
  for (const auto* groups : {&models.student_groups, &models.teacher_groups})
    for (const auto* of_model : {&groups->shard, &groups->replica})
      if (*of_model) all.push_back(of_model->get());
  return all;
}

// Seconds of a step that this rank waited for others, by level of group.
std::map<std::string, double> waited_seconds(const std::vector<comm::Group*>& groups, std::int64_t steps) {
  std::map<std::string, double> seconds;
  for (auto* group : groups)
    for (const auto& count : group->log().counts())
      seconds[group->level()] += count.exposed_seconds / static_cast<double>(steps);
  return seconds;
}

void update(shard::Parameters& student, optim::AdamW& optimizer, comm::Group& group, std::int64_t step) {
  std::vector<at::Tensor> of_units;
  for (std::int64_t unit = 0; unit < student.layout().num_units(); ++unit)
    of_units.push_back(ops::sum_of_squares(student.own_gradient(unit)));
  double squares[] = {at::stack(of_units).sum().item<double>()};
  group.all_sum(squares);
  const double scale = std::min(1.0, 1.0 / std::sqrt(squares[0]));
  for (std::int64_t unit = 0; unit < student.layout().num_units(); ++unit) {
    optimizer.update(unit, student.master(unit), student.own_gradient(unit), student.compute_copy(unit), step,
                     1.0, scale);
    student.updated(unit);
  }
}

at::ScalarType dtype_of(const Settings& s) {
  if (s.dtype != "auto") return model::parse_compute_dtype(s.dtype);
  const bench::ProductShape shape{s.length * s.sequences, s.hidden, s.student_width};
  return bench::measure_types(shape, s.device()).faster();
}

// By the words of an enum.
template <typename Enum, std::size_t kCount>
base::Json per_step(const std::array<double, kCount>& seconds, std::int64_t steps) {
  base::Json json;
  for (std::size_t i = 0; i < kCount; ++i)
    json[std::string(base::word(static_cast<Enum>(i)))] = seconds[i] / static_cast<double>(steps);
  return json;
}

// Of all ranks, in one file.
void write_traces(const std::string& path, const Trace& trace, comm::Group& group) {
  auto events = base::Json::array();
  for (const auto& text : group.all_texts(trace.text()))
    for (auto& event : base::Json::parse(text)) events.push_back(std::move(event));
  if (group.rank() == 0)
    base::write_file_atomically(path, base::Json{{"traceEvents", std::move(events)}}.dump() + "\n");
}

// From here on tensors take nothing more from the system.
constexpr std::int64_t kSettledStep = 3;

base::Json measure(const Settings& s, comm::Group& group) {
  std::optional<ProportionalPeak> proportional_peak;
  if (group.size() > 1 && !s.no_memory) proportional_peak.emplace();
  const auto dtype = dtype_of(s);
  const auto student_config = config_of(s, s.student_blocks, s.student_width);
  const auto teacher_config = config_of(s, s.teacher_blocks, s.teacher_width);
  const auto models = models_of(s, dtype, group);
  const auto& student = models.student;
  const auto& teacher = models.teacher;
  auto chosen = loss::paper_distillation_losses();
  if (s.logits_only)
    std::erase_if(chosen, [](const auto& of) { return of.kind == loss::LossKind::squarehead; });
  const auto losses = loss::make_losses(chosen, {s.student_blocks, s.teacher_blocks, {}});
  std::vector<optim::UnitRange> ranges;
  for (std::int64_t unit = 0; unit < student->layout().num_units(); ++unit)
    ranges.push_back(student->range(unit));
  optim::AdamW optimizer(student->layout(), ranges, {.lr = 2e-5}, s.device());
  const auto tokens = s.sequences * s.length;
  const auto item_bytes = static_cast<std::int64_t>(at::elementSize(dtype));
  shard::MemoryShape shape{
      .student = student_config,
      .teacher = &teacher_config,
      .teacher_logits = true,
      .loss_matrices = loss::composed_matrices(losses.on_logits, ops::path_of(s.device()), item_bytes),
      .hidden_losses = s.logits_only ? 0 : 1,
      .trained_on_copies = dtype == at::kBFloat16,
      .item_bytes = item_bytes,
      .micro_batch_tokens = tokens / group.size(),
      .sequence_tokens = s.length / s.documents,
      .micro_batches = 1,
      .wave = s.wave,
      .wave_tokens = s.wave * tokens / group.size(),
      .head_rows = s.head_rows > 0
                       ? s.head_rows
                       : shard::choose_head_rows(s.vocab, tokens, item_bytes, ops::path_of(s.device())),
      .keep_activations = s.keep,
      .path = ops::path_of(s.device()),
      .ranks = group.size(),
      .student_ranks = s.shard > 0 ? s.shard : group.size(),
      .teacher_ranks = s.shard > 0 ? s.shard : group.size()};
  shard::PhaseClock clock;
  const auto trace = std::make_shared<Trace>(group.rank());
  const auto groups = groups_of(group, models);
  if (!s.trace.empty()) {
    trace->watch(clock);
    for (auto* of_model : groups) trace->watch(*of_model);
  }
  ops::OperationClock operations;
  shard::ModelTeacher taught_by(*teacher);
  shard::Engine engine(*student, &taught_by, losses, group, clock,
                       {.wave = s.wave, .head_rows = shape.head_rows, .keep_activations = s.keep});
  const std::vector<shard::MicroBatch> batches = {own_batch(s, group)};
  ops::reset_peak_tensor_bytes(s.device());
  double best_seconds = 1e30, total_seconds = 0, loss = 0, grown_bytes = 0;
  for (std::int64_t step = 1; step <= s.steps + 1; ++step) {
    const double start = base::monotonic_seconds();
    loss = engine.step(batches).loss;
    clock.enter(shard::Phase::update);
    update(*student, optimizer, group, step);
    const double seconds = base::monotonic_seconds() - start;
    if (step == kSettledStep) grown_bytes -= static_cast<double>(ops::tensor_bytes_from_system());
    if (step == 1) {  // it also compiles kernels and touches pages
      clock.take();
      operations.take();
      for (auto* of_model : groups) of_model->log().clear();
      continue;
    }
    best_seconds = std::min(best_seconds, seconds);
    total_seconds += seconds;
  }
  if (s.steps + 1 >= kSettledStep) grown_bytes += static_cast<double>(ops::tensor_bytes_from_system());
  const auto waited = waited_seconds(groups, s.steps);
  const auto phase_seconds = clock.take();  // before the products below, which belong to no phase
  const auto operation_seconds = operations.take();
  const auto peak_tensor_bytes = ops::peak_tensor_bytes(s.device());
  if (!s.trace.empty()) write_traces(s.trace, *trace, group);
  const double flops = architecture::flops_per_token(teacher_config, s.length) +
                       3 * architecture::flops_per_token(student_config, s.length);
  double sums[] = {bench::matrix_product_flops(dtype, s.device())};
  group.all_sum(sums);
  const double peak = sums[0];
  double memory_bytes[] = {proportional_peak ? static_cast<double>(proportional_peak->bytes()) : 0,
                           grown_bytes};
  group.all_sum(memory_bytes);
  const double rate = static_cast<double>(tokens * s.steps) / total_seconds;
  return {{"dtype", model::dtype_name(dtype)},
          {"device", s.device_name},
          {"keep_activations", s.keep},
          {"ranks", group.size()},
          {"threads", at::get_num_threads()},
          {"loss", loss},
          {"tokens_per_second", rate},
          {"best_tokens_per_second", static_cast<double>(tokens) / best_seconds},
          {"exposed_seconds", waited},
          {"phase_seconds", per_step<shard::Phase>(phase_seconds, s.steps)},
          {"operation_seconds", per_step<ops::Operation>(operation_seconds, s.steps)},
          {"model_flops", rate * flops},
          {"matrix_product_flops", peak},
          {"share_of_peak", rate * flops / peak},
          {"planned_bytes", shard::plan_memory(shape).total_bytes()},
          {"peak_tensor_bytes", peak_tensor_bytes},
          {"process_peak_bytes", ops::process_peak_bytes()},
          {"proportional_peak_bytes", memory_bytes[0]},
          {"grown_bytes", memory_bytes[1]}};
}

}  // namespace

int main(int argc, char** argv) {
  Settings s;
  CLI::App app("Time and memory of one distillation step");
  app.add_option("--dtype", s.dtype, "auto, fp32 or bf16");
  app.add_option("--device", s.device_name, "cpu or cuda");
  app.add_option("--hidden", s.hidden);
  app.add_option("--vocab", s.vocab);
  app.add_option("--heads", s.heads);
  app.add_option("--kv-heads", s.kv_heads);
  app.add_option("--teacher-blocks", s.teacher_blocks);
  app.add_option("--teacher-width", s.teacher_width);
  app.add_option("--student-blocks", s.student_blocks);
  app.add_option("--student-width", s.student_width);
  app.add_option("--sequences", s.sequences);
  app.add_option("--length", s.length);
  app.add_option("--documents", s.documents, "segments per sequence");
  app.add_option("--steps", s.steps);
  app.add_option("--head-rows", s.head_rows, "tokens of a chunk of head and loss; 0: chosen as a stage does");
  app.add_flag("--keep", s.keep, "keep activations instead of computing them again");
  app.add_option("--shard", s.shard, "ranks that hold one copy of a model; 0: those of a machine");
  app.add_flag("--logits-only", s.logits_only, "cross-entropy and KL without SquareHead");
  app.add_flag("--no-memory", s.no_memory, "do not sample the memory, which takes time from the ranks");
  app.add_flag("--no-overlap", s.no_overlap, "let nothing move while something computes");
  app.add_option("--trace", s.trace, "file for what each rank did when, for a trace viewer");
  app.add_option("--ranks", s.ranks, "processes of this machine that make the step together");
  CLI11_PARSE(app, argc, argv);
  try {
    if (s.ranks > 1 && !retort::comm::is_local_rank())
      return retort::comm::run_local_ranks(static_cast<int>(s.ranks), {argv, argv + argc}).front().code;
    const auto group = retort::comm::world_group();
    retort::ops::install_tensor_allocator();
    const auto result = measure(s, *group);
    if (group->rank() == 0) std::cout << result.dump(1) << "\n";
  } catch (const retort::base::Error& error) {
    std::cerr << "distill_step: " << error.what() << "\n";
    return static_cast<int>(error.code());
  }
}
