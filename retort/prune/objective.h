#pragma once
// What a candidate costs: f = w_ppl * (NLL(candidate) - NLL(input)) + w_kl * KL(input || candidate), nats per
// token at temperature 1, per domain of the calibration text, then averaged over domains with equal weights.
//
// The model is never rebuilt: dropped blocks and halves of blocks are skipped, dropped channels, heads and
// hidden features are multiplied by 0.  The hidden states of a "current" candidate are kept as far as they
// fit, so that a candidate which first differs from it at block l costs only the blocks from l on.
//
// Shape legend: N tokens of a batch, D hidden, I width of the MLP, Y inputs of o_proj.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "retort/eval/score.h"
#include "retort/prune/calibration.h"
#include "retort/prune/candidate.h"
#include "retort/prune/options.h"

namespace retort::prune {

struct Cost {
  double objective = 0;  ///< f
  double delta_log_perplexity = 0;
  double kl = 0;
};

struct Evaluation {
  Cost mean;                     ///< over domains
  std::vector<Cost> domains;     ///< in the order of the calibration text
  std::size_t worst_domain = 0;  ///< the one with the largest f
};

struct EvaluatorOptions {
  ObjectiveWeights weights;
  std::int64_t cache_bytes = std::int64_t{2}
                             << 30;  ///< for kept hidden states, without those of the last block
  std::int64_t batch_tokens = 2048;  ///< that pass the model together, and the step of a part of the text
};

class Evaluator {
 public:
  static constexpr std::int64_t kAllBatches = std::numeric_limits<std::int64_t>::max();

  /// `input` is both what candidates are cut from and the teacher of the KL; it must outlive the evaluator.
  /// The whole model is the first current candidate.  Throws DataError for unusable text, ValidationError
  /// naming the block whose activations are not finite.
  Evaluator(const model::Weights& input, const std::vector<CalibrationDomain>& domains,
            const EvaluatorOptions& options);

  /// On the first `batches` batches of each domain, all of them when there are fewer.  The same f for a
  /// candidate whatever is current.  Throws ValidationError when f is not finite.
  Evaluation evaluate(const Candidate& candidate, std::int64_t batches = kAllBatches) const;
  /// Tokens that `batches` batches of each domain hold together.
  std::int64_t tokens(std::int64_t batches = kAllBatches) const;
  /// The text as it passes the model.
  const std::vector<CalibrationBatch>& batches() const { return batches_; }
  /// Of the domain that has most.
  std::int64_t most_batches() const;
  /// The input's own loss on all of the text, summed over targets.
  double input_nll() const;

  /// Makes a candidate the current one.  Throws as the constructor does.
  void settle(const Candidate& candidate);
  const Candidate& current() const { return current_; }

  const std::vector<std::string>& domain_names() const { return domain_names_; }

  /// Largest |difference| between the outputs of the masked candidate and of `sliced`, relative to the
  /// largest |output|, over the first batch of each domain.
  double difference(const Candidate& candidate, const model::Weights& sliced) const;

 private:
  struct Pass;
  void plan_cache(std::int64_t cache_bytes);
  std::int64_t first_change(const Candidate& candidate) const;
  at::Tensor output(std::size_t batch, const Pass& pass, std::int64_t begin) const;
  eval::ScoreSums score(std::size_t batch, const at::Tensor& hidden_ND, bool with_teacher) const;
  Evaluation evaluation_of(const std::vector<eval::ScoreSums>& sums,
                           const std::vector<double>& teacher_nll) const;

  const model::Weights& input_;
  ObjectiveWeights weights_;
  std::vector<std::string> domain_names_;
  std::vector<CalibrationBatch> batches_;
  std::vector<std::int64_t> place_;  // [batch], within its domain
  eval::HeadScorer scorer_;
  std::int64_t stride_ = 1;                    // hidden states are kept before blocks stride, 2 stride, ...
  std::vector<std::vector<at::Tensor>> kept_;  // [batch][block / stride], of the current candidate
  std::vector<at::Tensor> teacher_hidden_;     // [batch], output of the input's last block
  std::vector<double> teacher_nll_;            // [batch], sum over targets
  Candidate current_;
};

}  // namespace retort::prune
