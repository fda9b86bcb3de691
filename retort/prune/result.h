#pragma once
// What a prune stage leaves, whatever search chose it.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "retort/architecture/config.h"
#include "retort/architecture/kept.h"
#include "retort/base/json.h"
#include "retort/calibrate/loss_increase.h"
#include "retort/compress/compensate.h"
#include "retort/eval/speed_table.h"
#include "retort/model/weights.h"
#include "retort/prune/model_space.h"
#include "retort/prune/options.h"
#include "retort/prune/size.h"

namespace retort::prune {

/// A move that a step of the stepwise search measured.
struct MeasuredMove {
  Move move;
  double objective = 0;                 ///< loss increase relative to the input
  std::int64_t parameters_removed = 0;  ///< by this move
  double score = 0;                     ///< growth of the loss increase per parameter removed
  bool exact = false;                   ///< its KL is over the vocabulary
  std::string candidate;                ///< stable_hash of what stays
};

/// A step of the stepwise search.
struct Decision {
  MeasuredMove chosen;
  std::int64_t parameters = 0;                         ///< left after it
  std::optional<std::int64_t> inactive_channels = {};  ///< before it; only where channels may go
  std::vector<MeasuredMove> candidates = {};
};

/// A candidate with the KL over the vocabulary.
struct MeasuredCandidate {
  architecture::Kept kept;
  calibrate::Evaluation evaluation;
  std::vector<calibrate::DocumentSums> documents = {};  ///< what the evaluation is made from
};

/// What a search began from.
struct SearchStart {
  std::string name;
  MeasuredCandidate candidate;
};

/// One of the best that a search found.
struct Finalist {
  MeasuredCandidate candidate;
  double searched_objective = 0;             ///< as the search measured it
  calibrate::LossIncreaseDifference behind;  ///< the first
  bool tied() const { return behind.value <= 0 || (behind.interval && behind.interval->low <= 0); }
};

/// The course of a search over a space.
struct SearchCourse {
  SearchMethod method{};
  Units units{};
  std::size_t evaluations = 0;
  std::int64_t evaluations_not_finite = 0;
  double tokens_spent = 0;  ///< through the whole model
  std::int64_t tokens_budget = 0;
  std::vector<SearchStart> starts = {};
  std::vector<std::pair<double, double>> curve = {};  ///< tokens spent and best objective, when it improved
  std::int64_t inactive_channels = 0;                 ///< of the input
  std::vector<Finalist> finalists = {};               ///< the best first: it is the one that is saved
};

/// What a search believed of the candidate that it chose, and what the saved model has on the same documents.
struct Believed {
  double candidate = 0, saved = 0;                    ///< loss increase
  calibrate::LossIncreaseDifference behind;           ///< the saved model
  std::optional<eval::Interval> saved_interval = {};  ///< 95 %, over documents
};

/// All that is said of a prune stage.  It says every loss increase relative to the input.
struct PruneReport {
  architecture::Config input, output;
  Size size = {};           ///< what the target limits
  std::int64_t target = 0;  ///< in it
  architecture::Kept kept;
  double sliced_output_difference = 0;  ///< of the sliced and the masked model, see Evaluator
  bool compared_after_compensation = false;
  std::vector<std::string> sources;  ///< names, in the order of every Evaluation
  calibrate::Evaluation evaluation;  ///< of the saved model, on documents that nothing was chosen by
  std::optional<eval::Interval> interval = {};         ///< of its loss increase, 95 %, over these documents
  std::optional<double> objective_uncompensated = {};  ///< on the same; only where compensation was wanted
  Believed believed = {};
  std::optional<compress::CompensationOutcome> compensation = {};
  std::int64_t memory_planned_bytes = 0;
  std::int64_t memory_unused_bytes = 0;  ///< of them, room for candidates that the search did not fill
  std::variant<std::vector<Decision>, SearchCourse> course = {};  ///< of the stepwise search, or of another
  eval::SpeedTable speed = {};  ///< has the parts of the input, the output and the finalists
  double seconds = 0;
};
/// docs/formats/stage-results.md explains the keys.
base::Json to_json(const PruneReport& report);

struct PruneResult {
  model::Weights weights;
  PruneReport report;
};

}  // namespace retort::prune
