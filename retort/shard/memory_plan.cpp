#include "retort/shard/memory_plan.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <ranges>

#include "retort/architecture/counts.h"
#include "retort/architecture/layout.h"
#include "retort/base/error.h"
#include "retort/base/index.h"
#include "retort/base/units.h"
#include "retort/comm/accelerator.h"
#include "retort/loss/head_loop.h"
#include "retort/ops/work_memory.h"

namespace retort::shard {
namespace {

// Elements per token of the tensors of one block, as model/block.cpp makes them.
struct BlockSizes {
  std::int64_t hidden = 0, qkv = 0, joined = 0, kv = 0, width = 0, heads = 0;
  std::int64_t window = 0;
  bool capped = false;
  bool norms_before = true, norms_after = false, norms_heads = false, scaled = false;
  std::int64_t rows_of_heads = 0;  // that norms of queries and keys have for a token
  // The matrix whose gradient is the largest to be added; it has `hidden` columns.
  std::int64_t largest_rows = 0;
};

BlockSizes sizes_of(const architecture::Block& block, std::int64_t hidden) {
  BlockSizes sizes{.hidden = hidden,
                   .norms_before = block.norms_before(),
                   .norms_after = block.norms_after(),
                   .scaled = block.residual_factor != 1};
  if (block.attention) {
    const auto& a = *block.attention;
    sizes.heads = a.num_heads;
    sizes.joined = a.num_heads * a.head_dim;
    sizes.kv = a.num_kv_heads * a.head_dim;
    sizes.qkv = sizes.joined + 2 * sizes.kv;
    sizes.window = a.kind.window.value_or(0);
    sizes.capped = a.kind.softcap > 0;
    sizes.norms_heads = a.kind.norm != architecture::QueryKeyNorm::none;
    if (sizes.norms_heads)
      sizes.rows_of_heads =
          a.kind.norm == architecture::QueryKeyNorm::per_head ? a.num_heads + a.num_kv_heads : 2;
  }
  if (const auto* dense = std::get_if<architecture::DenseMlp>(&block.mlp)) sizes.width = dense->width;
  sizes.largest_rows = std::max(2 * sizes.width, sizes.qkv);
  return sizes;
}

// What a block holds of one micro-batch, bytes.
struct BlockBytes {
  const MemoryShape& shape;
  BlockSizes s;

  std::int64_t item() const { return shape.item_bytes; }
  std::int64_t tokens() const { return shape.micro_batch_tokens; }
  std::int64_t of(std::int64_t per_token) const { return item() * tokens() * per_token; }
  ops::AttentionSizes segment() const {
    return {.segment = shape.sequence_tokens,
            .tokens = tokens(),
            .heads = s.heads,
            .queries = s.joined,
            .keys = s.kv,
            .window = s.window,
            .capped = s.capped};
  }
  // The gradient of what a half's last layer gives, where it is not that of the half's output.
  std::int64_t branch_gradient() const { return s.norms_after || s.scaled ? of(s.hidden) : 0; }
  // Beside what is kept of a half, while that is made.
  std::int64_t branch_gradient_work() const {
    return s.norms_after ? of(s.scaled ? 2 * s.hidden : s.hidden) + norm_work() : branch_gradient();
  }
  // Kept for the norm after a half, and gone once the norm's gradient is made.
  std::int64_t kept_after() const { return s.norms_after ? of(s.hidden) + tokens() * 4 : 0; }
  // Queries and keys before their norms, and 1 / rms of each.
  std::int64_t of_heads() const { return s.norms_heads ? s.joined + s.kv : 0; }
  std::int64_t rows_of_heads() const { return tokens() * 4 * s.rows_of_heads; }
  std::int64_t norm_work() const { return ops::rms_norm_work_bytes(shape.path, tokens(), s.hidden, item()); }
  std::int64_t rotary_work() const {
    return ops::rotary_work_bytes(shape.path, tokens(), s.joined + s.kv, item());
  }
  std::int64_t attention_work() const { return ops::attention_work_bytes(shape.path, segment(), item()); }

  // BlockActivations.
  std::int64_t kept() const {
    const auto norms = (s.norms_before ? s.hidden : 0) + (s.norms_after ? s.hidden : 0);
    const auto attention = s.joined ? norms + s.qkv + s.joined + of_heads() : 0;
    const auto mlp = s.width ? norms + 2 * s.width : 0;
    return of(attention + mlp + s.hidden) + tokens() * 4 * (s.heads + 2 + (s.norms_after ? 2 : 0)) +
           rows_of_heads();
  }

  std::int64_t forward() const {
    // A norm holds one float a token beside its output, attention one for each head.
    const auto norm = of(s.hidden) + tokens() * 4;
    const auto rotation = norm + of(s.qkv) + std::max(rotary_work(), of(2 * of_heads()) + rows_of_heads());
    const auto attention = norm + of(s.qkv + s.joined + s.hidden) + tokens() * 4 * s.heads + attention_work();
    const auto mlp = norm + of(s.hidden + 3 * s.width + s.hidden);
    return std::max({of(2 * s.hidden) + norm_work(), rotation, attention, mlp});
  }

  // Beyond what is kept: the channels before the down projection, or the work of an operation.
  std::int64_t forward_beyond_kept() const {
    return std::max({of(s.width), attention_work(), rotary_work(),
                     norm_work() + of(s.norms_after ? s.hidden : 0), of(of_heads())});
  }

  std::int64_t mlp_backward() const {
    const auto adding =
        ops::add_transposed_product_work_bytes(shape.path, tokens(), s.largest_rows, s.hidden, item());
    const auto product = std::min(adding, item() * s.largest_rows * s.hidden);
    return branch_gradient() +
           std::max({of(2 * s.width + s.hidden) + product, of(s.width) + adding,
                     of(2 * s.width) + ops::swiglu_backward_work_bytes(shape.path, tokens(), s.width, item()),
                     of(s.width + s.hidden) + (s.norms_before ? of(s.hidden) + norm_work() : 0)});
  }

  std::int64_t attention_backward() const {
    const auto gradients = branch_gradient() + of(s.hidden + s.joined + s.qkv);
    return gradients +
           std::max({ops::attention_backward_work_bytes(shape.path, segment(), item()), rotary_work(),
                     of(2 * of_heads()), of((s.norms_before ? 2 : 1) * s.hidden) + norm_work()});
  }

  std::int64_t backward() const {
    const auto of_attention =
        kept() - of((s.norms_before ? 2 : 1) * s.hidden + 2 * s.width) - (s.width ? kept_after() : 0);
    return std::max({kept() + branch_gradient_work(), kept() - kept_after() + mlp_backward(),
                     of_attention + branch_gradient_work(),
                     of_attention - kept_after() + attention_backward(), forward()});
  }
};

// Largest value of `bytes` over the blocks of a model.
std::int64_t over_blocks(const MemoryShape& shape, const architecture::Config& config,
                         std::int64_t (BlockBytes::*bytes)() const) {
  std::int64_t largest = 0;
  for (const auto& block : config.blocks)
    largest = std::max(largest, (BlockBytes{shape, sizes_of(block, config.hidden_size)}.*bytes)());
  return largest;
}

// What backward holds beyond all activations that were kept: those of a block go with it.
std::int64_t backward_beyond_kept(const MemoryShape& shape, const architecture::Config& config) {
  std::int64_t largest = 0, gone = 0;
  for (const auto& block : config.blocks | std::views::reverse) {
    const BlockBytes bytes{shape, sizes_of(block, config.hidden_size)};
    gone += bytes.kept();
    largest = std::max(largest, bytes.backward() - gone);
  }
  return largest;
}

std::int64_t rotary_bytes(const architecture::Config& config, std::int64_t tokens) {
  return tokens * architecture::rotary_values_per_token(config) * 4;
}

std::int64_t largest_of(const architecture::Layout& layout) {
  return std::ranges::max(layout.units, {}, &architecture::Unit::size).size;
}

// Of an element of the master weights.
std::int64_t master_bytes(const MemoryShape& shape) {
  return std::max<std::int64_t>(4, shape.item_bytes);
}

// Sizes of the units of a model, in elements.
struct UnitSizes {
  explicit UnitSizes(const architecture::Layout& layout)
      : embedding(layout.units.front().size), head(layout.units[base::to_size(layout.head_unit())].size) {
    for (std::int64_t i = 0; i < layout.num_blocks(); ++i) {
      const auto size = layout.units[base::to_size(architecture::Layout::block_unit(i))].size;
      pair = std::max(pair, last + size);
      block = std::max(block, size);
      if (i == 0) first = size;
      last = size;
    }
    tied = layout.head_unit() == 0;
  }
  std::int64_t embedding = 0, head = 0, first = 0, last = 0;
  std::int64_t block = 0;  // the largest
  std::int64_t pair = 0;   // of neighbouring blocks
  bool tied = false;

  // The unit at hand and the next one, which arrives beside it.
  std::int64_t forward() const { return std::max({embedding + first, pair, last + head}); }
  std::int64_t scoring(bool holds_head) const {
    const auto passing = std::max((holds_head && tied ? 0 : embedding) + first, pair);
    return std::max(head, passing + (holds_head ? head : 0));
  }
};

// What several ranks hold beside their own parts, in a phase of a step.
struct Moving {
  std::int64_t gathered_bytes = 0;   // units of others' parts, where ranks share no memory
  std::int64_t gradients_bytes = 0;  // whole ones, before they are summed
};
struct MovingByPhase {
  Moving forward, head, backward, update, evaluation;
};
// The same and the work of a phase.
struct Moment {
  std::int64_t work_bytes;
  Moving moving;
  std::int64_t total_bytes() const { return work_bytes + moving.gathered_bytes + moving.gradients_bytes; }
};

MovingByPhase moving(const MemoryShape& shape, const architecture::Layout& layout) {
  if (shape.ranks == 1) return {};
  const auto master = master_bytes(shape);
  const UnitSizes student(layout);
  const auto others = student.embedding + (student.tied ? 0 : student.head);
  const bool in_common = shape.student_ranks > 1 && shape.student_ranks <= shape.ranks_of_memory;
  // Later waves begin beside what the one before has on its way, and each sum of theirs is added to it.
  const bool waves = shape.micro_batches > shape.wave;
  MovingByPhase by_phase;
  if (in_common) {  // taken once
    for (auto* phase :
         {&by_phase.forward, &by_phase.head, &by_phase.backward, &by_phase.update, &by_phase.evaluation})
      phase->gradients_bytes = (2 * student.block + others) * master;
  } else {
    const auto before = waves ? student.embedding : 0;
    by_phase.forward.gradients_bytes = waves ? (before + (student.tied ? 2 : 1) * student.block) * master : 0;
    by_phase.head.gradients_bytes = (before + student.head) * master;
    by_phase.backward.gradients_bytes =
        (student.block + (student.tied ? student.embedding + std::max(student.block, before)
                                       : std::max({student.head, student.block, student.embedding}))) *
        master;
  }
  if (waves)
    for (auto* phase : {&by_phase.forward, &by_phase.head, &by_phase.backward})
      phase->gradients_bytes += 2 * largest_of(layout) / shape.student_ranks * master;
  const auto gathered = [&](std::int64_t ranks, std::int64_t elements) {
    return ranks > shape.ranks_of_memory ? elements * shape.item_bytes : 0;
  };
  by_phase.forward.gathered_bytes = gathered(shape.student_ranks, student.forward());
  by_phase.evaluation.gathered_bytes = gathered(shape.student_ranks, student.scoring(shape.item_bytes >= 4));
  by_phase.head.gathered_bytes = gathered(shape.student_ranks, student.head + student.last);
  by_phase.backward.gathered_bytes = gathered(shape.student_ranks, std::max(student.pair, student.block));
  if (!shape.teacher) return by_phase;
  const UnitSizes teacher(architecture::make_layout(*shape.teacher));
  // A teacher that follows the student begins beside the student's head, another ends before the student
  // begins.
  const bool follows = shape.hidden_losses > 0;
  const auto head = shape.teacher_logits ? gathered(shape.teacher_ranks, teacher.head) : 0;
  const auto ahead = follows ? gathered(shape.teacher_ranks, teacher.first) : head;
  const auto beside = follows ? gathered(shape.student_ranks, student.head) : 0;
  by_phase.forward.gathered_bytes = std::max(by_phase.forward.gathered_bytes + ahead,
                                             beside + gathered(shape.teacher_ranks, teacher.forward()));
  by_phase.head.gathered_bytes += head;
  return by_phase;
}

// Forward, head, backward, update, evaluation and writing follow each other; nothing is kept for backward in
// the last two.
std::array<Moment, 6> moments_of(const MemoryShape& shape, const architecture::Layout& layout,
                                 std::int64_t kept_for_backward) {
  const auto& student = shape.student;
  const auto item = shape.item_bytes, tokens = shape.micro_batch_tokens, wave_tokens = shape.wave_tokens;
  const auto hidden = student.hidden_size, teacher_hidden = shape.teacher ? shape.teacher->hidden_size : 0;
  const auto forward =
      item * wave_tokens * (hidden + teacher_hidden) +
      std::max(over_blocks(shape, student,
                           shape.keep_activations ? &BlockBytes::forward_beyond_kept : &BlockBytes::forward),
               shape.teacher ? over_blocks(shape, *shape.teacher, &BlockBytes::forward) : 0);
  const auto head = item * (wave_tokens * (hidden + teacher_hidden) + tokens * hidden) +
                    loss::head_loop_bytes({.path = shape.path,
                                           .tokens = tokens,
                                           .chunk_rows = shape.head_rows,
                                           .vocab = student.vocab_size,
                                           .student_hidden = hidden,
                                           .teacher_hidden = teacher_hidden,
                                           .item_bytes = item,
                                           .teacher_logits = shape.teacher_logits,
                                           .loss_matrices = shape.loss_matrices,
                                           .capped = student.logits_softcap > 0});
  const auto backward = item * (wave_tokens * hidden + tokens * hidden) +
                        (shape.keep_activations ? backward_beyond_kept(shape, student)
                                                : over_blocks(shape, student, &BlockBytes::backward));
  const auto update = ops::optimizer_work_bytes(shape.path, largest_of(layout));
  const auto evaluation = shape.evaluation_bytes - kept_for_backward;
  const auto by_phase = moving(shape, layout);
  return {Moment{forward, by_phase.forward},
          Moment{head, by_phase.head},
          Moment{backward, by_phase.backward},
          Moment{update, by_phase.update},
          Moment{evaluation, by_phase.evaluation},
          Moment{shape.writing_bytes - kept_for_backward, by_phase.evaluation}};
}

// What a recipe says so that all of `ranks` hold each model between them.
std::string sharded_over(std::int64_t ranks, bool teacher) {
  return base::join("shard: {student_ranks: ", ranks, teacher ? base::join(", teacher_ranks: ", ranks) : "",
                    "}");
}

}  // namespace

std::int64_t gathered_to_score(const architecture::Layout& layout, bool holds_head) {
  return UnitSizes(layout).scoring(holds_head);
}

void MemoryPlan::share(std::string_view what, std::int64_t ranks) {
  for (auto& item : items)
    if (item.what == what) item.bytes /= ranks;
}

std::int64_t MemoryPlan::total_bytes() const {
  std::int64_t total = 0;
  for (const auto& item : items) total += item.bytes;
  return total;
}

std::int64_t MemoryPlan::bytes_of(std::string_view what) const {
  std::int64_t bytes = 0;
  for (const auto& item : items)
    if (item.what == what) bytes += item.bytes;
  return bytes;
}

MemoryPlan plan_memory(const MemoryShape& shape) {
  const auto layout = architecture::make_layout(shape.student);
  const auto elements = layout.size();
  const auto item = shape.item_bytes, master = master_bytes(shape);
  const auto blocks = static_cast<std::int64_t>(shape.student.blocks.size());
  const auto tokens = shape.micro_batch_tokens, wave_tokens = shape.wave_tokens;
  const auto hidden = shape.student.hidden_size;

  MemoryPlan plan;
  plan.items.push_back(
      {"student weights", shape.trained_on_copies
                              ? elements * master / shape.ranks + elements * item / shape.student_ranks
                              : elements * master / shape.student_ranks});
  plan.items.push_back({"gradients", elements * master / shape.student_ranks});
  plan.items.push_back({"optimizer state", elements * (8 + shape.rule_bytes) / shape.ranks});
  if (shape.teacher)
    plan.items.push_back(
        {"teacher weights", architecture::make_layout(*shape.teacher).size() * item / shape.teacher_ranks});
  plan.items.push_back({"token ids and positions",
                        16 * tokens * shape.micro_batches + rotary_bytes(shape.student, wave_tokens) +
                            (shape.teacher ? rotary_bytes(*shape.teacher, wave_tokens) : 0)});
  if (shape.waiting_bytes > 0)
    plan.items.push_back({"sequences that wait for their step", shape.waiting_bytes});
  const auto kept_between_steps = plan.total_bytes();
  plan.items.push_back({"block inputs", blocks * wave_tokens * hidden * item});
  if (shape.hidden_losses > 0)
    plan.items.push_back({"gradients of losses on hidden states",
                          (blocks * wave_tokens + (shape.hidden_losses > 1 ? tokens : 0)) * hidden * item});
  if (shape.keep_activations) {
    std::int64_t kept = 0;
    for (const auto& block : shape.student.blocks)
      kept += BlockBytes{shape, sizes_of(block, hidden)}.kept() * wave_tokens / tokens;
    plan.items.push_back({"kept activations", kept});
  }

  const auto kept_for_backward = plan.total_bytes() - kept_between_steps;
  const auto moments = moments_of(shape, layout, kept_for_backward);
  const auto& largest = *std::ranges::max_element(moments, {}, &Moment::total_bytes);
  const bool writes = &largest == &moments.back();
  if (largest.moving.gradients_bytes > 0)
    plan.items.push_back({"gradients on their way", largest.moving.gradients_bytes});
  if (largest.moving.gathered_bytes > 0)
    plan.items.push_back({"gathered units", largest.moving.gathered_bytes});
  if (shape.path != ops::Path::cpu && shape.ranks > 1)
    plan.items.push_back({"gradients that wait to be added",
                          std::min(comm::kMostReceived_bytes, largest_of(layout) * master)});
  plan.items.push_back(
      {writes ? "packed weights, keys, values of writing" : "work of a block, or of head and losses",
       ops::product_work_bytes(shape.path, shape.item_bytes) + largest.work_bytes});
  return plan;
}

MemoryPlan plan_memory_within(const MemoryShape& shape, std::int64_t available_bytes) {
  constexpr std::int64_t kMostRanks = 1 << 16;
  auto plan = plan_memory(shape);
  if (plan.total_bytes() <= available_bytes) return plan;
  auto wider = shape;
  for (auto ranks = std::max<std::int64_t>(2, shape.ranks); ranks <= kMostRanks; ranks *= 2) {
    wider.ranks = wider.student_ranks = wider.teacher_ranks = ranks;
    if (plan_memory(wider).total_bytes() > available_bytes) continue;
    plan.advice += base::join(
        ", or ",
        ranks > shape.ranks ? base::join("start ", ranks, " ranks with as much memory each and ") : "",
        "set ", sharded_over(ranks, shape.teacher), " in the stage");
    break;
  }
  return plan;
}

std::int64_t block_forward_bytes(const architecture::Config& config, std::int64_t tokens,
                                 std::int64_t sequence_tokens, std::int64_t item_bytes, ops::Path path) {
  return over_blocks({.student = config,
                      .item_bytes = item_bytes,
                      .micro_batch_tokens = tokens,
                      .sequence_tokens = sequence_tokens,
                      .path = path},
                     config, &BlockBytes::forward);
}

std::int64_t choose_head_rows(std::int64_t vocab_size, std::int64_t micro_batch_tokens,
                              std::int64_t item_bytes, ops::Path path) {
  // Each chunk reads the head's matrix twice and adds a gradient of its size: more rows make that cheaper,
  // and take more memory.  From so many on, nothing more is gained; beside the fast products of bfloat16 that
  // is later (benchmarks/distill_step/RESULTS.md).
  const bool on_cpu = path == ops::Path::cpu;
  const std::int64_t logits = std::int64_t{1} << (on_cpu ? item_bytes == 2 ? 25 : 24 : 27);
  const std::int64_t rows =
      std::clamp<std::int64_t>(logits / vocab_size / 64 * 64, 128, on_cpu ? 1024 : 8192);
  return std::min(rows, micro_batch_tokens);
}

std::string describe(const MemoryPlan& plan) {
  std::string text;
  const auto line = [&text](const std::string& what, std::int64_t bytes) {
    char row[128];
    std::snprintf(row, sizeof row, "  %-40s %12s\n", what.c_str(),
                  base::human_bytes(static_cast<std::uint64_t>(bytes)).c_str());
    text += row;
  };
  for (const auto& item : plan.items) line(item.what, item.bytes);
  line("total", plan.total_bytes());
  return text;
}

void require_fits(const MemoryPlan& plan, std::int64_t available_bytes) {
  const auto total = plan.total_bytes();
  base::require<base::MemoryError>(total <= available_bytes, "memory: the plan needs ",
                                   base::human_bytes(static_cast<std::uint64_t>(total)), ", available are ",
                                   base::human_bytes(static_cast<std::uint64_t>(available_bytes)), "; ",
                                   plan.advice, ". The plan:\n", describe(plan));
}

}  // namespace retort::shard
