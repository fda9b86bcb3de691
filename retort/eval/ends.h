#pragma once
// How likely a model finds the ends of texts: what tasks with answers to choose from ask of it.

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "retort/comm/group.h"
#include "retort/eval/evaluate.h"

namespace retort::eval {

/// A text whose last tokens are scored, from 1 up to all but the first.
struct TextEnd {
  std::vector<std::int32_t> ids = {};
  std::int64_t scored = 1;
};

struct EndScore {
  double log_likelihood = 0;  ///< of the scored tokens, nats
  bool greedy = false;        ///< each of them is the most likely one where it stands
  bool operator==(const EndScore&) const = default;
};

struct EndSettings {
  std::int64_t tokens = 2048;    ///< that go through a block together; at least one text
  std::int64_t head_rows = 256;  ///< rows of a chunk of logits
  comm::Group* group = nullptr;  ///< its ranks take one batch after the other; null: this process all
};

/// Texts that are scored, and all; called on every rank, and throws on every rank or on none.
using EndsProgress = std::function<void(std::int64_t done, std::int64_t all)>;

/// Scores in the order of `texts`.  What several texts of a batch begin with goes through the model once,
/// where angles do not depend on a text's length.  A score depends on the others by rounding only.  With a
/// group it is collective, and every rank gives the same texts and has all scores.  Throws UsageError (a text
/// longer than architecture::longest_context() + 1, or with nothing to score), ModelError (an id outside the
/// vocabulary) and ValidationError (a score that is not finite).
std::vector<EndScore> score_ends(const Subject& model, std::span<const TextEnd> texts,
                                 const EndSettings& settings = {}, const EndsProgress& progress = {});

}  // namespace retort::eval
