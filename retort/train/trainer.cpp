#include "retort/train/trainer.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <optional>

#include "retort/base/error.h"
#include "retort/base/index.h"
#include "retort/base/machine.h"
#include "retort/base/units.h"
#include "retort/bench/matrix_product.h"
#include "retort/comm/lead.h"
#include "retort/comm/share.h"
#include "retort/ops/device_memory.h"
#include "retort/ops/operation_clock.h"
#include "retort/ops/optimizer_step.h"
#include "retort/ops/tensor_allocator.h"
#include "retort/optim/schedule.h"
#include "retort/record/metrics_line.h"
#include "retort/shard/accelerator.h"
#include "retort/shard/engine.h"
#include "retort/train/batches.h"
#include "retort/train/patience.h"
#include "retort/train/step_flops.h"
#include "retort/train/step_sequences.h"
#include "retort/train/stragglers.h"

namespace retort::train {
namespace {

// Of the data cursor: the place among prompts.
constexpr auto kOnPolicy = "on_policy";

std::int64_t sequences_of_step(const TrainOptions& options) {
  return options.batch.sequences * options.batch.accumulate;
}

std::int64_t tokens_per_step(const TrainOptions& options) {
  return options.packing.sequence_length * sequences_of_step(options);
}

// Of a step.
record::NamedNumbers numbers_of(const WrittenCounts& counts) {
  return {{"texts", static_cast<double>(counts.texts)},
          {"tokens", static_cast<double>(counts.tokens)},
          {"ended", static_cast<double>(counts.ended)},
          {"repeating", static_cast<double>(counts.repeating)}};
}

// As many digits as the clock is worth.
record::NamedNumbers in_microseconds(record::NamedNumbers seconds) {
  for (auto& [name, value] : seconds) value = std::round(value * 1e6) / 1e6;
  return seconds;
}

std::vector<optim::UnitRange> ranges_of(const shard::Parameters& parameters) {
  std::vector<optim::UnitRange> ranges;
  for (std::int64_t unit = 0; unit < parameters.layout().num_units(); ++unit)
    ranges.push_back(parameters.range(unit));
  return ranges;
}

// State of the loop; one object so that a step reads as the recipe of a step.
class Loop {
 public:
  explicit Loop(TrainSetup& setup)
      : s_(setup),
        optimizer_(setup.student.layout(), ranges_of(setup.student), setup.options.optim, setup.device,
                   setup.rule),
        checkpoint_(setup.checkpoints, {setup.student, optimizer_, setup.group}),
        stragglers_(setup.group.size()),
        sequences_(setup.stream, setup.group, sequences_of_step(setup.options)),
        engine_(setup.student, setup.teacher, setup.losses, setup.group, clock_, setup.plan.engine,
                setup.writing.losses),
        steps_(num_steps(setup.options)) {
    if (s_.writing.losses)
      written_.emplace(s_.options, s_.writing, s_.student, s_.group, s_.plan.texts_at_once);
    clock_.tell([this](shard::Phase phase) {
      s_.group.job().at(progress_.step + 1, base::join(s_.stage, ", ", base::word(phase)));
      if (device_phases_) device_phases_->enter(phase);
    });
    if (!s_.device.is_cpu() && s_.group.size() > 1) device_phases_.emplace(shard::accelerator_of(s_.device));
    flops_ = step_flops(s_.student.config(), s_.teacher ? s_.teacher->config() : nullptr,
                        s_.losses.needs_teacher_logits(), s_.options.packing.sequence_length);
    double peak[] = {bench::matrix_product_flops(s_.dtype, s_.device)};
    s_.group.all_sum(peak);
    peak_flops_ = peak[0];
    s_.group.job().set_patience(patience_.seconds());
  }

  ~Loop() { s_.group.job().set_patience(0); }
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  TrainOutcome run() {
    resume();
    make_copies();
    if (progress_.step == 0) record_held_out_before();
    const auto begin = progress_.step;
    ops::reset_peak_tensor_bytes(s_.device);
    while (progress_.step < steps_) {
      step();
      const bool last = progress_.step == steps_;
      if (last || progress_.step % s_.options.checkpoint_every_steps == 0) check_replicas();
      if (last || stops()) {
        save();
        if (!last) return {.finished = false, .progress = progress_, .steps = steps_, .result = {}};
      } else if (progress_.step % s_.options.checkpoint_every_steps == 0) {
        begin_to_save();
      }
    }
    auto finished = result();
    finished.steps_of_start = steps_ - begin;
    return {.finished = true, .progress = progress_, .steps = steps_, .result = std::move(finished)};
  }

 private:
  // What each rank tells all others once a step.
  struct Said {
    double squares = 0;    // of its part of the gradient
    double stop = 0;       // above 0: it was asked to
    RankStep before = {};  // the step before; of accelerators this one, up to here
  };

  void resume() {
    auto saved = load_checkpoint(s_.checkpoints, {s_.student, optimizer_, s_.group}, s_.observer);
    if (saved) progress_ = std::move(*saved);
    s_.group.agree([&] {
      if (saved) sequences_.seek(progress_.cursor);
      if (saved && written_) written_->seek(progress_.cursor.value(kOnPolicy, base::Json()));
      if (s_.metrics) s_.metrics->drop_after(s_.stage, progress_.step > 0 ? progress_.step : -1);
      if (progress_.step == steps_) recall_last_line();
    });
    if (saved)
      s_.observer.message(record::Level::info,
                          base::join(s_.stage, ": going on after step ", progress_.step, " of ", steps_));
  }

  // Stopped between the last checkpoint and the stage's result: its figures stand in the metrics.
  void recall_last_line() {
    if (!s_.metrics) return;
    for (const auto& json : record::read_metrics(s_.metrics->path()))
      if (auto line = record::metrics_line(json); line.stage == s_.stage && line.step == steps_)
        last_line_ = std::move(line);
    last_held_out_ = last_line_.held_out;
  }

  void step() {
    const double start = base::monotonic_seconds();
    clock_.enter(shard::Phase::data);
    clock_.take();
    std::optional<ops::OperationClock> operations;
    if (profiled()) operations.emplace();
    const auto batches = next_batches();
    engine_.forward_backward(batches, most_batches_);
    end_of_saving();  // what it writes changes from here on
    clock_.enter(shard::Phase::update);
    project_gradients();
    const auto result = engine_.result(own_squares());
    // All that ranks have to say to each other stands before the update: new weights are on their way after
    // it, while the next step computes.
    said_.squares = result.own;
    const double norm = exchange(batches);
    s_.group.together([&] { require_finite(result, norm); });
    if (progress_.step + 1 < steps_ && !asked_to_stop_) sequences_.fetch(written_of_step(progress_.step + 2));
    update(norm);
    progress_.step += 1;
    progress_.tokens += result.tokens;
    progress_.cursor = sequences_.cursor();
    if (written_ && leads()) progress_.cursor[kOnPolicy] = written_->state();
    const double seconds = base::monotonic_seconds() - start;
    patience_.add(seconds);
    s_.group.job().set_patience(patience_.seconds());
    if (s_.device.is_cpu()) {
      const auto phases = clock_.take();
      keep_step(phases, batches);
      if (operations) keep_profile(phases, operations->take());
    }
    progress_.seconds += seconds;
    record(result, norm, seconds);
  }

  void keep_step(const shard::PerPhase& phases, std::span<const shard::MicroBatch> batches) {
    std::int64_t sequences = 0;
    for (const auto& batch : batches) sequences += batch.sequences();
    said_.before = {.sequences = static_cast<double>(sequences), .seconds = phases};
    has_phases_ = true;
  }

  // Of accelerators the clocks would say when work was queued.
  bool profiled() const { return s_.options.step_profile && s_.device.is_cpu(); }

  void keep_profile(const shard::PerPhase& phases, const ops::PerOperation& operations) {
    phase_seconds_ = in_microseconds(record::named<shard::Phase>(phases));
    operation_seconds_ = in_microseconds(record::named<ops::Operation>(operations));
  }

  // All ranks stop after the same step: what one hears after their exchange waits for the next.
  bool stops() const { return asked_to_stop_ || (s_.group.size() == 1 && s_.observer.stop_requested()); }

  // Returns the gradient's norm.  Stragglers are told a step later.
  double exchange(std::span<const shard::MicroBatch> batches) {
    if (device_phases_) keep_step(device_phases_->take(), batches);
    said_.stop = s_.observer.stop_requested() ? 1 : 0;
    std::vector<Said> all(static_cast<std::size_t>(s_.group.size()));
    static_assert(sizeof(Said) == (3 + shard::kPhases) * sizeof(double), "numbers, nothing between them");
    constexpr auto kNumbers = static_cast<std::int64_t>(sizeof(Said) / sizeof(double));
    if (s_.group.size() > 1) clock_.enter(shard::Phase::exchange);
    s_.group
        .all_gather({&said_, kNumbers, comm::Type::f64},
                    {all.data(), kNumbers * s_.group.size(), comm::Type::f64})
        .wait();
    clock_.enter(shard::Phase::update);
    double squares = 0;
    std::vector<RankStep> steps;
    for (const auto& said : all) {
      squares += said.squares;
      asked_to_stop_ = asked_to_stop_ || said.stop > 0;
      steps.push_back(said.before);
    }
    if (has_phases_ && s_.group.size() > 1)
      for (const auto& straggler : stragglers_.add(steps))
        s_.observer.message(record::Level::warning, base::join(s_.stage, ": ", described(straggler)));
    return std::sqrt(squares);
  }

  bool leads() const { return s_.group.rank() == 0; }
  std::int64_t written_of_step(std::int64_t step) const {
    return written_ ? written_sequences(s_.options.on_policy, sequences_of_step(s_.options), step) : 0;
  }

  // Text comes first, then what the student writes.
  std::vector<shard::MicroBatch> next_batches() {
    const auto step = progress_.step + 1, per_batch = s_.options.batch.sequences;
    const auto share = sequences_.next(written_of_step(step));
    first_sample_ = share.first_number;
    last_sample_ = share.last_number;
    auto batches = make_micro_batches(share.sequences, per_batch, s_.device);
    std::int64_t written = 0;
    if (written_) {
      const shard::InPhase phase(clock_, shard::Phase::writing);
      const auto sequences = written_->write(step, written_of_step(step));
      written = std::ssize(sequences);
      for (auto& batch : make_micro_batches(own_written(sequences), per_batch, s_.device)) {
        batch.written = true;
        batches.push_back(std::move(batch));
      }
    }
    most_batches_ = most_batches(step, written);
    return batches;
  }

  // What a rank has of a step: places of text, and behind them places of what was written.
  struct Places {
    comm::Share text, written;
  };
  Places places_of(int rank, std::int64_t step, std::int64_t written) const {
    const auto all = base::to_size(sequences_of_step(s_.options));
    const auto text = all - base::to_size(written_of_step(step)), end = text + base::to_size(written);
    const auto own = comm::share_of(all, rank, s_.group.size());
    return {{std::min(own.first, text), std::min(own.last, text)},
            {std::clamp(own.first, text, end) - text, std::clamp(own.last, text, end) - text}};
  }
  std::vector<data::Sequence> own_written(const std::vector<data::Sequence>& sequences) const {
    const auto [text, own] = places_of(s_.group.rank(), progress_.step + 1, std::ssize(sequences));
    return {sequences.begin() + static_cast<std::ptrdiff_t>(own.first),
            sequences.begin() + static_cast<std::ptrdiff_t>(own.last)};
  }
  std::int64_t most_batches(std::int64_t step, std::int64_t written) const {
    const auto per_batch = base::to_size(s_.options.batch.sequences);
    const auto batches = [&](const comm::Share& share) {
      return (share.last - share.first + per_batch - 1) / per_batch;
    };
    std::size_t most = 0;
    for (int rank = 0; rank < s_.group.size(); ++rank) {
      const auto [text, own] = places_of(rank, step, written);
      most = std::max(most, batches(text) + batches(own));
    }
    return static_cast<std::int64_t>(most);
  }

  void project_gradients() {
    if (!s_.rule) return;
    for (std::int64_t unit = 0; unit < s_.student.layout().num_units(); ++unit)
      s_.rule->project_gradient(unit, s_.student.own_gradient(unit));
  }

  // Those that were loaded are of the master weights as they are.
  void make_copies() {
    if (!s_.rule || !s_.rule->needs().own_copies) return;
    for (std::int64_t unit = 0; unit < s_.student.layout().num_units(); ++unit) {
      const auto copy = s_.student.compute_copy(unit);
      base::ensure(copy.defined(), "a rule that makes copies has a compute type of its own");
      s_.rule->make_copy(unit, s_.student.master(unit), copy);
      s_.student.updated(unit);
    }
  }

  at::Tensor own_squares() {
    auto sum = ops::sum_of_squares(s_.student.own_gradient(0));
    for (std::int64_t unit = 1; unit < s_.student.layout().num_units(); ++unit)
      sum.add_(ops::sum_of_squares(s_.student.own_gradient(unit)));
    return sum;
  }

  void require_finite(const shard::StepResult& result, double norm) const {
    base::require<base::ValidationError>(
        std::isfinite(result.loss) && std::isfinite(norm), s_.stage, ": step ", progress_.step + 1,
        first_sample_ < 0 ? std::string(" (written by the student)")
                          : base::join(" (samples ", first_sample_, " to ", last_sample_, ")"),
        ": ", std::isfinite(result.loss) ? "the gradient's norm" : "the loss",
        " is not finite; no update was made and the last checkpoint is intact. Lower optim.lr, or look at "
        "these samples.");
  }

  void update(double norm) {
    const double clip = s_.options.optim.clip_norm;
    const double scale = clip > 0 && norm > clip ? clip / norm : 1.0;
    const auto step = progress_.step + 1;
    rate_factor_ = optim::schedule_factor(s_.options.optim, step, steps_);
    for (std::int64_t unit = 0; unit < s_.student.layout().num_units(); ++unit) {
      optimizer_.update(unit, s_.student.master(unit), s_.student.own_gradient(unit),
                        s_.student.compute_copy(unit), step, rate_factor_, scale);
      s_.student.updated(unit);
    }
  }

  record::NamedNumbers held_out() {
    return held_out_losses(s_.held_out, s_.student, s_.options, s_.device, s_.group);
  }

  static double mean(const record::NamedNumbers& losses) {
    double sum = 0;
    for (const auto& [source, loss] : losses) sum += loss;
    return sum / static_cast<double>(std::max<std::size_t>(1, losses.size()));
  }

  // The curve of the held-out loss begins where the stage began.
  void record_held_out_before() {
    last_held_out_ = held_out();
    if (!last_held_out_.empty() && s_.metrics)
      s_.metrics->append(record::to_json(record::MetricsLine{.stage = s_.stage, .held_out = last_held_out_}));
  }

  void record(const shard::StepResult& result, double norm, double seconds) {
    const double rate = static_cast<double>(result.tokens) / seconds;
    const auto& options = s_.options;
    record::StepReport report{.stage = s_.stage,
                              .step = progress_.step,
                              .steps = steps_,
                              .tokens = progress_.tokens,
                              .loss = result.loss,
                              .parts = {result.parts.begin(), result.parts.end()},
                              .written_parts = {result.written_parts.begin(), result.written_parts.end()},
                              .lr = options.optim.lr * rate_factor_,
                              .gradient_norm = norm,
                              .tokens_per_second = rate,
                              .peak_fraction = rate * flops_.all / peak_flops_,
                              .eta_seconds = progress_.seconds / static_cast<double>(progress_.step) *
                                             static_cast<double>(steps_ - progress_.step),
                              .held_out_loss = {},
                              .writing_fraction = {}};
    if (written_) report.writing_fraction = written_->last().seconds / seconds;
    last_line_ = {.stage = report.stage,
                  .step = report.step,
                  .tokens = report.tokens,
                  .loss = report.loss,
                  .parts = report.parts,
                  .written_parts = report.written_parts,
                  .written = written_ ? numbers_of(written_->last()) : record::NamedNumbers(),
                  .gradient_norm = report.gradient_norm,
                  .lr = report.lr,
                  .tokens_per_second = report.tokens_per_second,
                  .peak_fraction = report.peak_fraction,
                  .seconds = progress_.seconds,
                  .phase_seconds = phase_seconds_,
                  .operation_seconds = operation_seconds_,
                  .held_out = {}};
    const bool evaluate = options.evaluate_every_steps > 0 &&
                          (progress_.step % options.evaluate_every_steps == 0 || progress_.step == steps_);
    if (evaluate && !s_.held_out.empty()) {
      last_line_.held_out = last_held_out_ = held_out();
      report.held_out_loss = mean(last_held_out_);
    }
    if (s_.metrics) s_.metrics->append(record::to_json(last_line_));
    s_.observer.step(report);
  }

  void sync_metrics() {
    comm::lead(s_.group, [this] {
      if (s_.metrics) s_.metrics->sync(s_.observer);
    });
  }

  // The last one must be there.
  void save() {
    sync_metrics();
    checkpoint_.begin(progress_);
    finish_to_save();
  }

  void begin_to_save() {
    or_go_on([this] {
      sync_metrics();
      checkpoint_.begin(progress_);
    });
  }

  void end_of_saving() {
    if (!checkpoint_.pending()) return;
    clock_.enter(shard::Phase::checkpoint);
    or_go_on([this] { finish_to_save(); });
  }

  // An undeleted checkpoint only wastes disk space.
  void finish_to_save() {
    checkpoint_.finish();
    try {
      checkpoint_.remove_earlier();
    } catch (const base::StorageError& error) {
      s_.group.recovered();
      s_.observer.message(record::Level::warning,
                          base::join(s_.stage, ": the checkpoint of step ", checkpoint_.step(),
                                     " is saved, and an earlier one could not be removed: ", error.what()));
    }
  }

  void check_replicas() {
    s_.student.check_replicas();
    if (s_.teacher) s_.teacher->check_replicas();
  }

  // A full disk costs this checkpoint only; training continues.
  void or_go_on(const std::function<void()>& write) {
    try {
      write();
    } catch (const base::StorageError& error) {
      s_.group.recovered();
      const auto step = checkpoint_.step(), next = std::min(steps_, step + s_.options.checkpoint_every_steps);
      s_.observer.message(record::Level::warning,
                          base::join(s_.stage, ": training goes on without a checkpoint of step ", step,
                                     ", the next is written after step ", next,
                                     " and the one before is kept: ", error.what()));
    }
  }

  TrainResult result() const {
    TrainResult result{.steps = steps_,
                       .tokens = progress_.tokens,
                       .seconds = progress_.seconds,
                       .matrix_product_flops = peak_flops_,
                       .flops_per_token = flops_.all,
                       .phase_flops_per_token = flops_.by_phase,
                       .operation_flops_per_token = flops_.by_operation,
                       .final = last_line_,
                       .plan = {}};
    result.final.held_out = last_held_out_;
    if (written_) result.written = written_->all();
    return result;
  }

  TrainSetup& s_;
  optim::AdamW optimizer_;
  CheckpointWriter checkpoint_;
  shard::PhaseClock clock_;
  std::optional<shard::DevicePhases> device_phases_;  // of several ranks
  Stragglers stragglers_;
  StepSequences sequences_;
  Patience patience_;
  shard::Engine engine_;
  std::optional<WrittenTexts> written_;
  std::int64_t steps_, most_batches_ = 0;
  Progress progress_;
  Said said_;
  bool has_phases_ = false, asked_to_stop_ = false;
  double rate_factor_ = 0, peak_flops_ = 0;
  StepFlops flops_;
  record::NamedNumbers phase_seconds_, operation_seconds_;
  std::int64_t first_sample_ = 0, last_sample_ = 0;
  record::NamedNumbers last_held_out_;
  record::MetricsLine last_line_;
};

}  // namespace

std::int64_t num_steps(const TrainOptions& options) {
  const auto per_step = tokens_per_step(options);
  return (options.tokens + per_step - 1) / per_step;
}

TrainOutcome train(TrainSetup& setup) {
  setup.observer.message(record::Level::info,
                         base::join(setup.stage, ": memory plan\n", shard::describe(setup.plan.memory)));
  Loop loop(setup);
  auto outcome = loop.run();
  if (outcome.finished) {
    outcome.result.plan = setup.plan.memory;
    outcome.result.peak_tensor_bytes = ops::peak_tensor_bytes(setup.device);
    outcome.result.process_peak_bytes = ops::process_peak_bytes();
    outcome.result.keep_activations = setup.plan.engine.keep_activations;
  }
  return outcome;
}

}  // namespace retort::train
