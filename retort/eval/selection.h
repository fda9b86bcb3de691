#pragma once
// Which of several models to take, by what they say of the same documents.

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "retort/eval/bootstrap.h"
#include "retort/eval/evaluate.h"

namespace retort::eval {

struct Standing {
  double nll = 0;                    ///< nats per token, mean over sources
  double behind = 0;                 ///< above the least
  std::optional<Interval> interval;  ///< 95 %, of that, over documents that are paired; empty with too few
  bool tied = false;                 ///< it has the least, or the interval covers 0
};

/// In the order of the models.  Without intervals only what has the least loss is tied.  Throws ModelError
/// when they were not scored on the same documents with the same tokens.
std::vector<Standing> standings(std::span<const ModelScores> models);

/// The one with the least loss; of equals the first.
std::size_t chosen(std::span<const Standing> standings);

}  // namespace retort::eval
