#include "retort/shard/engine.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <optional>

#include "retort/base/error.h"
#include "retort/base/index.h"
#include "retort/loss/head_loop.h"
#include "retort/model/block.h"
#include "retort/model/head.h"
#include "retort/shard/units.h"

namespace retort::shard {
namespace {

using base::to_size;

// The one reading of a step.  A meta tensor has no values.
std::vector<double> on_host(const at::Tensor& values_L) {
  std::vector<double> values(static_cast<std::size_t>(values_L.numel()));
  if (values_L.is_meta()) return values;
  const auto here_L = values_L.cpu();
  std::copy_n(here_L.const_data_ptr<double>(), values.size(), values.begin());
  return values;
}

}  // namespace

// What one wave holds between forward and backward, per micro-batch.
struct Engine::Wave {
  struct Lane {
    const MicroBatch* batch;
    model::TokenLayout layout;
    at::Tensor hidden_ND;                              ///< output of the last block that was computed
    std::vector<at::Tensor> inputs_ND;                 ///< of each student block
    std::vector<model::BlockActivations> activations;  ///< of each student block, when they are kept
    std::vector<at::Tensor> hidden_grads_ND;  ///< of each student block's output, by the losses on it
    at::Tensor grad_ND;
  };
  /// Output of a block; that of all but the last is kept as the next one's input.
  static const at::Tensor& output_of(const Lane& lane, std::int64_t block) {
    return block + 1 < std::ssize(lane.inputs_ND) ? lane.inputs_ND[to_size(block + 1)] : lane.hidden_ND;
  }
  std::vector<Lane> lanes;
  std::unique_ptr<TeacherWave> teacher;  ///< null where no loss needs one
};

Engine::Engine(Parameters& student, Teacher* teacher, const loss::Losses& losses, comm::Group& group,
               PhaseClock& clock, EngineOptions options, const loss::Losses* on_written)
    : student_(student),
      teacher_(teacher),
      losses_(losses),
      on_written_(on_written),
      group_(group),
      clock_(clock),
      options_(options),
      asking_{clock, group, [this] { student_.advance(); }} {
  base::ensure(!losses.needs_teacher() || teacher, "a loss that compares with a teacher has one");
  base::ensure(!on_written || on_written->on_hidden.empty(), "losses on written text look at logits");
  for (auto place = std::ssize(losses.on_logits); const auto& loss : losses.on_hidden) {
    for (std::int64_t block = 0; block < student.layout().num_blocks(); ++block)
      comparisons_.push_back(
          {loss.get(), place, block, loss->needs_teacher() ? loss->teacher_block(block) : -1});
    ++place;
  }
  std::ranges::stable_sort(comparisons_, {}, &Comparison::teacher_block);
  const auto compared = comparisons_.empty() ? -1 : comparisons_.back().teacher_block;
  base::ensure(compared < (teacher ? teacher->num_blocks() : 0),
               "a teacher has the blocks that are compared");
  const bool logits = losses.needs_teacher_logits();
  needs_ = {.logits = logits,
            .num_tokens = losses.num_tokens,
            .last_block = logits ? teacher->num_blocks() - 1 : compared,
            .ends_before_student = logits && comparisons_.empty()};
}

Engine::~Engine() {
  try {
    counting_.wait();
  } catch (const std::exception&) {  // another rank failed: whoever waits for a call is told
  }
}

void Engine::forward_backward(std::span<const MicroBatch> batches, std::int64_t most_batches) {
  const InPhase phase(clock_, Phase::student_forward);
  counts_ = {};
  for (const auto& batch : batches) {
    const auto tokens = static_cast<double>(batch.tokens()), targets = static_cast<double>(batch.num_targets);
    counts_.tokens += tokens;
    counts_.targets += targets;
    if (!batch.written) continue;
    counts_.written_tokens += tokens;
    counts_.written_targets += targets;
  }
  // Not waited for here: weights that the last update made may be on their way before it.
  static_assert(sizeof(Counts) == 4 * sizeof(double), "numbers, those of written text last");
  counting_ = group_.all_reduce({&counts_, on_written_ ? 4U : 2U, comm::Type::f64});
  student_.zero_gradients();
  const auto losses = std::ssize(losses_.all()) + (on_written_ ? std::ssize(on_written_->on_logits) : 0);
  sums_L_ = at::zeros({losses}, student_.own_gradient(0).options().dtype(at::kDouble));

  const auto blocks = student_.layout().num_blocks();
  for (std::size_t first = 0; first < to_size(most_batches); first += to_size(options_.wave)) {
    last_wave_ = first + to_size(options_.wave) >= to_size(most_batches);
    Wave wave;
    const auto begin = std::min(first, batches.size());
    const auto count = std::min(to_size(options_.wave), batches.size() - begin);
    for (const auto& batch : batches.subspan(begin, count))
      wave.lanes.push_back({.batch = &batch,
                            .layout = {},
                            .hidden_ND = {},
                            .inputs_ND = {},
                            .activations = {},
                            .hidden_grads_ND = {},
                            .grad_ND = {}});
    if (losses_.needs_teacher()) begin_teacher(wave, batches.subspan(begin, count));
    embed(wave);
    for (std::int64_t block = 0; block < blocks; ++block) forward_block(wave, block);
    wait_for_counts();
    compare_hidden(wave);
    head(wave);
    for (std::int64_t block = blocks - 1; block >= 0; --block) backward_block(wave, block);
    backward_embedding(wave);
  }
  const Waiting waiting(clock_, group_);
  student_.finish_reduces();
}

StepResult Engine::result(const at::Tensor& own) {
  auto values = on_host(own.defined() ? at::cat({sums_L_, own.view({1})}) : sums_L_);
  const double read = own.defined() ? values.back() : 0;
  values.resize(to_size(sums_L_.numel()));
  auto result = result_of(std::move(values));
  result.own = read;
  return result;
}

AcquiredUnit Engine::acquired(std::int64_t unit) {
  const Waiting waiting(clock_, group_);
  return {student_, unit};
}

void Engine::prefetch(std::int64_t unit) {
  const Waiting waiting(clock_, group_);
  student_.prefetch(unit);
}

at::Tensor Engine::gradient(std::int64_t unit) {
  const Waiting waiting(clock_, group_);
  return student_.gradient(unit);
}

void Engine::wait_for_counts() {
  const Waiting waiting(clock_, group_);
  counting_.wait();
  step_tokens_ = counts_.tokens;
  step_targets_ = std::max(counts_.targets, 1.0);
}

const loss::Losses& Engine::losses_of(const MicroBatch& batch) const {
  base::ensure(!batch.written || on_written_, "a step that has written text has losses on it");
  return batch.written ? *on_written_ : losses_;
}

// Of each loss, over the whole step and the whole group.  All are divided by all targets, or tokens, of the
// step, and so is their weighted sum; people read the means over text and over written text.
StepResult Engine::result_of(std::vector<double> sums) {
  {
    const Waiting waiting(clock_, group_);
    group_.all_sum(sums);
  }
  StepResult result;
  result.tokens = static_cast<std::int64_t>(counts_.tokens);
  result.targets = static_cast<std::int64_t>(counts_.targets);
  result.written_targets = static_cast<std::int64_t>(counts_.written_targets);
  const double text_tokens = step_tokens_ - counts_.written_tokens;
  const double text_targets = std::max(step_targets_ - counts_.written_targets, 1.0);
  const bool all_written = counts_.written_tokens > 0 && text_tokens == 0;
  std::size_t place = 0;
  for (const auto* loss : losses_.all()) {
    const bool by_targets = loss->normaliser() == loss::Normaliser::targets;
    const double sum = sums[place++];
    result.loss += loss->weight() * (sum / (by_targets ? step_targets_ : step_tokens_));
    if (!all_written) result.parts[loss->name()] = sum / (by_targets ? text_targets : text_tokens);
  }
  if (!on_written_) return result;
  for (const auto& loss : on_written_->on_logits) {
    const double sum = sums[place++];
    result.loss += loss->weight() * (sum / step_targets_);
    if (counts_.written_targets > 0) result.written_parts[loss->name()] = sum / counts_.written_targets;
  }
  return result;
}

void Engine::embed(Wave& wave) {
  const auto unit = acquired(0);
  prefetch(architecture::Layout::block_unit(0));
  const auto matrix_VD = model::embedding_matrix(student_.layout(), unit.flat());
  for (auto& lane : wave.lanes) {
    lane.layout =
        model::make_token_layout(student_.config(), lane.batch->starts, matrix_VD.device(), frequencies_);
    lane.hidden_ND = model::embed(matrix_VD, lane.batch->ids_N, student_.config().embedding_factor);
  }
}

// Where no loss compares hidden states it computes while the student's new weights arrive.
void Engine::begin_teacher(Wave& wave, std::span<const MicroBatch> batches) {
  wave.teacher = teacher_->begin(batches, needs_, asking_);
  if (needs_.ends_before_student) wave.teacher->go_to(needs_.last_block);
}

void Engine::forward_block(Wave& wave, std::int64_t block) {
  const auto unit = acquired(architecture::Layout::block_unit(block));
  const auto next = unit_after(student_, block), head = student_.layout().head_unit();
  prefetch(next);
  if (next == head && needs_.ends_before_student) wave.teacher->prefetch_head();
  const auto weights = block_of(student_, block, unit.flat());
  for (auto& lane : wave.lanes) {
    lane.inputs_ND.push_back(lane.hidden_ND);
    model::BlockActivations* keep = nullptr;
    if (options_.keep_activations) keep = &lane.activations.emplace_back();
    lane.hidden_ND =
        model::block_forward(weights, student_.config().rms_norm_eps, lane.hidden_ND, lane.layout, keep);
  }
}

void Engine::compare_hidden(Wave& wave) {
  for (auto& lane : wave.lanes) lane.hidden_grads_ND.resize(lane.inputs_ND.size());
  if (comparisons_.empty()) return;
  const InPhase phase(clock_, Phase::hidden_losses);
  for (const auto& [loss, place, block, teacher_block] : comparisons_) {
    if (wave.teacher) wave.teacher->go_to(teacher_block);
    for (std::size_t i = 0; i < wave.lanes.size(); ++i) {
      auto& lane = wave.lanes[i];
      if (lane.batch->written) continue;
      const auto& student_ND = Wave::output_of(lane, block);
      const auto teacher_NF = loss->needs_teacher() ? wave.teacher->hidden_NF(i) : at::Tensor();
      const auto grad_ND = at::empty_like(student_ND);
      sums_L_[place].add_(loss->add({student_ND, teacher_NF, lane.batch->bounds, step_tokens_}, grad_ND));
      auto& sum_ND = lane.hidden_grads_ND[to_size(block)];
      if (sum_ND.defined())
        sum_ND.add_(grad_ND);
      else
        sum_ND = grad_ND;
    }
  }
}

void Engine::head(Wave& wave) {
  const InPhase phase(clock_, Phase::head);
  if (needs_.logits) wave.teacher->go_to(needs_.last_block);
  const auto unit = student_.layout().head_unit();
  const auto student = acquired(unit);
  if (const auto blocks = student_.layout().num_blocks(); blocks > 0)
    prefetch(architecture::Layout::block_unit(blocks - 1));
  const auto weights = model::head_weights(student_.layout(), student.flat());
  const auto gradients = model::head_weights(student_.layout(), gradient(unit));
  if (needs_.logits) wave.teacher->acquire_head();
  loss::HeadSide side{weights, student_.config().rms_norm_eps, {}, model::logit_rule(student_.config())};
  for (std::size_t i = 0; auto& lane : wave.lanes) {
    side.hidden_ND = lane.hidden_ND;
    const auto of_teacher = [&](std::int64_t begin, std::int64_t rows) {
      return wave.teacher->logits_RK(i, begin, rows);
    };
    const auto& losses = losses_of(*lane.batch);
    const auto first = lane.batch->written ? std::ssize(losses_.all()) : 0;
    lane.grad_ND =
        loss::head_loop(losses, side, of_teacher, lane.batch->targets_N, step_targets_, options_.head_rows,
                        gradients, sums_L_.narrow(0, first, std::ssize(losses.on_logits)));
    side.hidden_ND = lane.hidden_ND = at::Tensor();
    if (wave.teacher) wave.teacher->forget(i);
    ++i;
  }
  if (unit != 0) student_.reduce(unit, last_wave_);
  wave.teacher.reset();
}

void Engine::backward_block(Wave& wave, std::int64_t block) {
  const InPhase phase(clock_, Phase::backward);
  const auto unit_number = architecture::Layout::block_unit(block);
  const auto unit = acquired(unit_number);
  if (block > 0) prefetch(unit_number - 1);
  const auto weights = block_of(student_, block, unit.flat());
  const auto gradients = block_of(student_, block, gradient(unit_number));
  const double eps = student_.config().rms_norm_eps;
  for (auto& lane : wave.lanes) {
    if (const auto of_losses_ND = std::move(lane.hidden_grads_ND.back()); of_losses_ND.defined())
      lane.grad_ND.add_(of_losses_ND);
    lane.hidden_grads_ND.pop_back();
    const auto input_ND = std::move(lane.inputs_ND.back());
    lane.inputs_ND.pop_back();
    model::BlockActivations kept;
    if (options_.keep_activations) {
      kept = std::move(lane.activations.back());
      lane.activations.pop_back();
    } else {
      kept = model::block_activations(weights, eps, input_ND, lane.layout);
    }
    lane.grad_ND =
        model::block_backward(weights, input_ND, std::move(kept), lane.grad_ND, lane.layout, gradients);
  }
  student_.reduce(unit_number, last_wave_);
}

void Engine::backward_embedding(Wave& wave) {
  const InPhase phase(clock_, Phase::backward);
  const auto gradient_VD = model::embedding_matrix(student_.layout(), gradient(0));
  for (auto& lane : wave.lanes) {
    model::embed_backward(lane.grad_ND, lane.batch->ids_N, student_.config().embedding_factor, gradient_VD);
    lane.grad_ND = at::Tensor();
  }
  student_.reduce(0, last_wave_);
}

}  // namespace retort::shard
