#pragma once
// Batches of windows that go through a model and its teacher, one for each rank at a time.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "retort/eval/evaluate.h"
#include "retort/model/packed_text.h"

namespace retort::eval {

/// Windows that go through a block together.
struct Batch {
  std::vector<Window> windows;
  std::int64_t tokens = 0;
};

/// A batch and what came of it; rows are on the host, in float32.
struct ScoredBatch {
  Batch batch;
  ScoreSums sums;
  RowScores rows;
  double seconds = 0;  ///< of the model's blocks
};

/// Takes windows through the models.  Where ranks gather weights from each other they pass the same units at
/// the same time.
class BatchScorer {
 public:
  /// As evaluate_source; all that is given outlives it.
  BatchScorer(const Subject& model, const Subject* teacher, const std::string& source, Windows* windows,
              const BatchSettings& settings)
      : model_(model), teacher_(teacher), source_(source), windows_(windows), settings_(settings) {}

  /// The next batch of each rank, scored; false at the end.  Collective.  Throws as evaluate_source.
  bool next_round(std::vector<ScoredBatch>& round);

 private:
  /// What both models make of a batch.
  struct States {
    model::PackedText packed;
    at::Tensor model_ND, teacher_ND;
  };

  bool several() const { return group_ && group_->size() > 1; }
  void read(std::vector<ScoredBatch>& round, std::size_t batches);
  void read_once(std::vector<ScoredBatch>& round);
  void exchange(std::vector<ScoredBatch>& round, const std::string& own) const;
  void check(const Batch& batch) const;
  States states_of(ScoredBatch& scored) const;
  at::Tensor teacher_states_of(const model::PackedText& packed, const at::Tensor& model_ND) const;
  void score(const States& states, ScoredBatch& scored) const;

  const Subject& model_;
  const Subject* teacher_;
  const std::string& source_;
  Windows* windows_;
  const BatchSettings& settings_;
  comm::Group* group_ = settings_.group;
  bool gathers_ = !model_.parameters.resident() || (teacher_ && !teacher_->parameters.resident());
  std::optional<Window> left_over_;
};

}  // namespace retort::eval
