#pragma once
// What a candidate costs, its loss increase: w_ppl * (NLL(candidate) - NLL(input)) + w_kl * KL(input ||
// candidate), nats per token at temperature 1, by source of the text, then averaged with equal weights.
//
// The model is never rebuilt: dropped blocks and halves of blocks are skipped, dropped channels, heads and
// hidden features are multiplied by 0.  Hidden states between blocks are kept as far as they fit
// (recent_tensors.h), so that a candidate which first differs at block l from one seen before costs only the
// blocks from l on.  While candidates are compared, the input's distributions are its 512 most likely tokens
// and one outcome for all others, kept at 4 KiB a token: their KL is a lower bound, and the input's head is
// not computed again.  Close candidates can be compared by the KL over the vocabulary, for one product with
// the input's head more.
//
// Asked to, the evaluator gives the masked layers the weights that compensation would give them.
//
// Shape legend: N tokens of a batch, D hidden, I width of the MLP, Y inputs of o_proj.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "retort/architecture/kept.h"
#include "retort/base/json.h"
#include "retort/calibrate/loss_increase.h"
#include "retort/calibrate/split_text.h"
#include "retort/calibrate/text.h"
#include "retort/calibrate/top_k_reference.h"
#include "retort/comm/group.h"
#include "retort/compress/compensated_layers.h"
#include "retort/eval/score.h"
#include "retort/model/recent_tensors.h"
#include "retort/model/stored_tensors.h"
#include "retort/record/observer.h"

namespace retort::prune {

struct MaskedModel;

/// Candidates whose hidden states are kept, the one at hand and its neighbours; most bytes of them.
inline constexpr std::int64_t kCachedCandidates = 3, kCacheBytes = std::int64_t{2} << 30;
/// Number of logit rows computed at a time.
std::int64_t chunk_rows(std::int64_t vocab_size);

struct EvaluatorOptions {
  calibrate::ObjectiveWeights weights;
  std::int64_t cache_bytes = kCacheBytes;
  std::int64_t batch_tokens =
      calibrate::kCalibrationBatchTokens;  ///< tokens passed together, and the size of a piece
  /// What compensation is fitted to, in documents that candidates are not compared on; null: candidates are
  /// compared without it.  See compensated_layers.h.
  const std::vector<calibrate::SourceText>* fitted = nullptr;
  base::Path scratch = {};               ///< folder for sums if memory is short; empty: none
  base::Path hidden_scratch = {};        ///< folder for hidden states; empty: in memory
  record::Observer* observer = nullptr;  ///< watches the pass that compensation needs
  comm::Group* group = nullptr;          ///< whose ranks share that pass; null: this process alone
};

using calibrate::KlOver;

class Evaluator {
 public:
  /// `input` is both what candidates are cut from and the teacher of the KL; it must outlive the evaluator.
  /// With a group it is collective.  Throws DataError for unusable text, ValidationError for a model whose
  /// losses are not finite or naming the block whose activations are not, StorageError, StoppedError.
  Evaluator(const model::Weights& input, const std::vector<calibrate::SourceText>& sources,
            const EvaluatorOptions& options);

  /// Evaluates a candidate on all of the text.  Its loss increase is the same whatever was evaluated before;
  /// it is infinite where it is not finite.  Throws StorageError.
  calibrate::Evaluation evaluate(const architecture::Kept& candidate, KlOver over = KlOver::top_k) const;
  /// What evaluate() is made from, by document; the loss above the input's.  Throws as that.
  std::vector<calibrate::DocumentSums> document_sums(const architecture::Kept& candidate,
                                                     KlOver over = KlOver::top_k) const;
  /// The same by batch: of the batches from `first` on, every `step`-th.
  std::vector<std::vector<calibrate::DocumentSums>> batch_sums(const architecture::Kept& candidate,
                                                               KlOver over, std::size_t first,
                                                               std::size_t step) const;
  /// Of all batches, in their order, by document.
  std::vector<calibrate::DocumentSums> joined(
      const std::vector<std::vector<calibrate::DocumentSums>>& by_batch) const;
  /// What evaluate() makes of the sums.
  calibrate::Evaluation evaluation_of(const std::vector<calibrate::DocumentSums>& documents) const;
  /// The same of a model that was cut from the input, as it is and with the KL over the whole vocabulary.
  std::vector<calibrate::DocumentSums> document_sums(const model::Weights& sliced) const;
  /// Evaluates such a model.  Serves what is reported.  Throws ValidationError when that is not finite,
  /// StorageError.
  calibrate::Evaluation evaluate_exactly(const model::Weights& sliced) const;
  /// What document_sums() add up to.  Throws ValidationError when that is not finite.
  calibrate::Evaluation checked(const std::vector<calibrate::DocumentSums>& documents) const;
  /// The model that the candidate was compared as: sliced, with the weights that its layers were fitted to.
  struct Compared {
    model::Weights weights;
    std::vector<std::string> fitted_layers;
  };
  Compared as_compared(const architecture::Kept& candidate) const;
  bool after_compensation() const { return compensated_ != nullptr; }
  std::int64_t tokens() const;
  /// What it keeps of candidates: their hidden states and their weights.  It never becomes less.
  std::int64_t bytes_of_candidates() const;
  /// The text as it passes the model.
  const std::vector<calibrate::Batch>& batches() const { return batches_; }

  /// The text by pieces: the first batch of every source, then the second of every source, and so on.
  struct Piece {
    std::size_t batch = 0;
    std::int64_t round = 0;  ///< the batch's place in its source
    std::int64_t tokens = 0;
  };
  const std::vector<Piece>& pieces() const { return pieces_; }
  /// Loss increase on the first `rounds` rounds of the text = sum_i weights[i] * costs[i] over its pieces.
  std::vector<double> piece_weights(std::int64_t rounds) const;
  /// w_ppl * (NLL - NLL(input)) + w_kl * KL, summed over the targets of each piece from `first` up to `last`.
  std::vector<double> piece_costs(const architecture::Kept& candidate, std::size_t first,
                                  std::size_t last) const;

  const std::vector<std::string>& source_names() const { return source_names_; }

  /// Largest |difference| between the outputs of the masked candidate and of `sliced`, relative to the
  /// largest |output|, over the first batch of each source, both without compensation.
  double difference(const architecture::Kept& candidate, const model::Weights& sliced) const;

 private:
  /// Sees the input of every block, kept or not.
  using BeforeBlock = std::function<void(std::int64_t block, const at::Tensor& x_ND)>;
  void keep_whole_model(record::Observer& observer);
  MaskedModel masked_model(const architecture::Kept& candidate) const;
  /// A batch on its way: the input of a block.
  struct Passing {
    std::int64_t block = 0;
    at::Tensor hidden_ND;
  };
  Passing start(std::size_t batch, const MaskedModel& masked) const;
  void pass_block(std::size_t batch, const MaskedModel& masked, const BeforeBlock& before,
                  Passing& passing) const;
  /// Tells the output of the last block of each of these batches in turn; `number`: its place among them.
  using OutputOf = std::function<void(std::size_t number, const at::Tensor& hidden_ND)>;
  void pass(const std::vector<std::size_t>& batches, const MaskedModel& masked, const OutputOf& use,
            const BeforeBlock& before = {}) const;
  void add(std::size_t batch, const at::Tensor& hidden_ND, KlOver over,
           std::vector<calibrate::DocumentSums>& documents) const;

  const model::Weights& input_;
  calibrate::ObjectiveWeights weights_;
  std::vector<std::string> source_names_;
  std::vector<calibrate::Batch> batches_;
  std::vector<Piece> pieces_;
  eval::HeadScorer scorer_;
  // Hidden states between blocks, by batch and a hash of what comes before.
  mutable model::RecentTensors<std::pair<std::size_t, std::string>> cache_;
  model::StoredTensors teacher_hidden_;  // [batch], output of the input's last block
  calibrate::TopKReference reference_;   // the input's distributions
  std::unique_ptr<compress::CompensatedLayers> compensated_;
};

/// What the loss increase of a candidate depends on beside it: by content, so that another machine goes on
/// with what one has measured, although its own results would differ in the last digits.
base::Json objective_identity(const model::Weights& input, const Evaluator& evaluator,
                              const calibrate::TextSplit& text, const calibrate::ObjectiveWeights& weights);

}  // namespace retort::prune
