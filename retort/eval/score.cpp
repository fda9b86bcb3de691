#include "retort/eval/score.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "retort/base/error.h"
#include "retort/bench/stopwatch.h"
#include "retort/ops/logit_scores.h"
#include "retort/shard/acquired_unit.h"

namespace retort::eval {
namespace {

at::Tensor widened(const at::Tensor& x) {
  return x.scalar_type() == at::kDouble ? x : x.to(at::kFloat);
}

void check_vocabularies(const HeadScorer& student, const HeadScorer& teacher) {
  base::require<base::ModelError>(student.num_tokens() == teacher.num_tokens(),
                                  "evaluation: the model has a vocabulary of ", student.num_tokens(),
                                  " tokens, the teacher one of ", teacher.num_tokens(),
                                  "; compare models with the same tokenizer.");
}

// targets that count and whose row satisfies `hit`.
std::int64_t count_hits(const at::Tensor& hit_R, const at::Tensor& counted_R) {
  return at::logical_and(hit_R, counted_R).sum().item<std::int64_t>();
}

// Rows that count, by how sure the model is of its most likely token and whether that is the target.
void add_confidence(const ops::ChunkScores& chunk, const at::Tensor& targets_R, ConfidenceBins& bins) {
  const auto confidence = chunk.confidence_N.to(at::kCPU, at::kDouble);
  const auto top1 = chunk.top1_N.to(at::kCPU), targets = targets_R.to(at::kCPU).contiguous();
  for (std::int64_t row = 0; row < targets.size(0); ++row)
    if (const auto target = targets.const_data_ptr<std::int64_t>()[row]; target >= 0)
      bins.add(confidence.const_data_ptr<double>()[row], top1.const_data_ptr<std::int64_t>()[row] == target);
}

RowScores empty_rows(const at::Tensor& hidden_ND, bool with_teacher) {
  const auto type = hidden_ND.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  const auto column = [&] { return at::empty({hidden_ND.size(0)}, hidden_ND.options().dtype(type)); };
  return {column(), with_teacher ? column() : at::Tensor(), with_teacher ? column() : at::Tensor()};
}

void keep_rows(const ops::ChunkScores& chunk, std::int64_t begin, RowScores& rows) {
  const auto keep = [&](const at::Tensor& part, const at::Tensor& whole_N) {
    if (whole_N.defined()) whole_N.narrow(0, begin, part.size(0)).copy_(part);
  };
  keep(chunk.nll_N, rows.nll_N);
  keep(chunk.kl_N, rows.kl_N);
  keep(chunk.teacher_nll_N, rows.teacher_nll_N);
}

}  // namespace

void ScoreSums::add(const ScoreSums& other) {
  targets += other.targets;
  nll += other.nll;
  kl += other.kl;
  top1_correct += other.top1_correct;
  top1_agreement += other.top1_agreement;
  confidence.add(other.confidence);
  teacher_nll += other.teacher_nll;
  teacher_top1_correct += other.teacher_top1_correct;
  head_seconds += other.head_seconds;
}

HeadScorer::HeadScorer(const architecture::Config& config, const architecture::Layout& layout,
                       const at::Tensor& head_unit_flat, std::int64_t num_tokens)
    : eps_(config.rms_norm_eps), rule_(model::logit_rule(config)) {
  const auto head = model::head_weights(layout, head_unit_flat);
  head_ = {widened(head.norm_D), widened(head.matrix_VD)};
  num_tokens_ = num_tokens > 0 ? std::min(num_tokens, vocab_size()) : vocab_size();
}

at::Tensor HeadScorer::logits(const at::Tensor& hidden_RD) const {
  return model::logits(head_, eps_, rule_, hidden_RD.to(head_.norm_D.scalar_type()));
}

ScoreSums score_hidden(const HeadScorer& student, const at::Tensor& hidden_ND, const HeadScorer* teacher,
                       const at::Tensor& teacher_hidden_ND, const at::Tensor& targets_N,
                       std::int64_t chunk_rows, RowScores* row_scores) {
  if (teacher) check_vocabularies(student, *teacher);
  const auto tokens = hidden_ND.size(0);
  if (row_scores) *row_scores = empty_rows(hidden_ND, teacher != nullptr);
  const bool own_teacher = teacher == &student && teacher_hidden_ND.is_same(hidden_ND);
  ScoreSums sums;
  for (std::int64_t begin = 0; begin < tokens; begin += chunk_rows) {
    const auto rows = std::min(chunk_rows, tokens - begin);
    const auto targets_R = targets_N.narrow(0, begin, rows), counted_R = targets_R.ge(0);
    const bench::Stopwatch watch(hidden_ND.device());
    const auto student_RV = student.logits(hidden_ND.narrow(0, begin, rows));
    sums.head_seconds += watch.seconds();
    at::Tensor teacher_RV;
    if (teacher)
      teacher_RV = own_teacher ? student_RV : teacher->logits(teacher_hidden_ND.narrow(0, begin, rows));
    const auto scores = ops::score_chunk(student_RV, teacher_RV, targets_R, student.num_tokens());
    sums.targets += counted_R.sum().item<std::int64_t>();
    sums.nll += scores.nll_N.sum(at::kDouble).item<double>();
    sums.top1_correct += count_hits(scores.top1_N.eq(targets_R), counted_R);
    add_confidence(scores, targets_R, sums.confidence);
    if (row_scores) keep_rows(scores, begin, *row_scores);
    if (!teacher) continue;
    sums.kl += scores.kl_N.sum(at::kDouble).item<double>();
    sums.teacher_nll += scores.teacher_nll_N.sum(at::kDouble).item<double>();
    sums.teacher_top1_correct += count_hits(scores.teacher_top1_N.eq(targets_R), counted_R);
    sums.top1_agreement += count_hits(scores.agreed_N, counted_R);
  }
  return sums;
}

at::Tensor embedded(shard::Parameters& parameters, const at::Tensor& ids_N) {
  const shard::AcquiredUnit acquired(parameters, 0);
  return model::embed(model::embedding_matrix(parameters.layout(), acquired.flat()), ids_N,
                      parameters.config().embedding_factor);
}

at::Tensor through_blocks(shard::Parameters& parameters, const at::Tensor& ids_N,
                          const ThroughBlock& through) {
  const auto& config = parameters.config();
  const auto blocks = parameters.layout().num_blocks();
  const auto prefetch = [&](std::int64_t block) {
    if (block < blocks) parameters.prefetch(architecture::Layout::block_unit(block));
  };
  prefetch(0);
  auto hidden_ND = embedded(parameters, ids_N);
  for (std::int64_t block = 0; block < blocks; ++block) {
    const auto unit = architecture::Layout::block_unit(block);
    const shard::AcquiredUnit acquired(parameters, unit);
    prefetch(block + 1);
    const auto weights =
        model::block_weights(config.blocks[static_cast<std::size_t>(block)],
                             parameters.layout().units[static_cast<std::size_t>(unit)], acquired.flat());
    hidden_ND = through(weights, hidden_ND);
  }
  return hidden_ND;
}

at::Tensor forward_hidden(shard::Parameters& parameters, const at::Tensor& ids_N,
                          const model::TokenLayout& layout) {
  const double eps = parameters.config().rms_norm_eps;
  return through_blocks(parameters, ids_N,
                        [&](const model::BlockWeights& weights, const at::Tensor& hidden_ND) {
                          return model::block_forward(weights, eps, hidden_ND, layout);
                        });
}

}  // namespace retort::eval
