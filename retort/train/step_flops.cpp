#include "retort/train/step_flops.h"

#include "retort/architecture/counts.h"
#include "retort/ops/operation_clock.h"
#include "retort/shard/phases.h"

namespace retort::train {
namespace {

record::NamedNumbers phase_flops(const architecture::Config& student, const architecture::Config* teacher,
                                 bool teacher_logits, std::int64_t context) {
  const auto blocks = [&](const architecture::Config& config) {
    return architecture::flops_per_token(config, context) - architecture::head_flops_per_token(config);
  };
  shard::PerPhase flops = {};
  const auto of = [&](shard::Phase phase) -> double& { return flops[static_cast<std::size_t>(phase)]; };
  of(shard::Phase::student_forward) = blocks(student);
  of(shard::Phase::backward) = 2 * blocks(student);
  of(shard::Phase::head) = 3 * architecture::head_flops_per_token(student);
  if (teacher) of(shard::Phase::teacher_forward) = blocks(*teacher);
  if (teacher && teacher_logits) of(shard::Phase::head) += architecture::head_flops_per_token(*teacher);
  return record::named<shard::Phase>(flops);
}

record::NamedNumbers operation_flops(const architecture::Config& student, const architecture::Config* teacher,
                                     bool teacher_logits, std::int64_t context) {
  ops::PerOperation flops = {};
  auto& product = flops[static_cast<std::size_t>(ops::Operation::product)];
  auto& attention = flops[static_cast<std::size_t>(ops::Operation::attention)];
  const auto add = [&](const architecture::Config& config, double passes) {
    const auto of_attention = architecture::attention_flops_per_token(config, context);
    product += passes * (architecture::flops_per_token(config, context) - of_attention);
    attention += passes * of_attention;
  };
  add(student, 3);
  if (teacher) add(*teacher, 1);
  if (teacher && !teacher_logits) product -= architecture::head_flops_per_token(*teacher);
  return record::named<ops::Operation>(flops);
}

}  // namespace

StepFlops step_flops(const architecture::Config& student, const architecture::Config* teacher,
                     bool teacher_logits, std::int64_t sequence_tokens) {
  const auto by_phase = phase_flops(student, teacher, teacher_logits, sequence_tokens);
  double all = 0;
  for (const auto& [phase, flops] : by_phase) all += flops;
  return {.all = all,
          .by_phase = by_phase,
          .by_operation = operation_flops(student, teacher, teacher_logits, sequence_tokens)};
}

}  // namespace retort::train
