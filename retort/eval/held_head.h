#pragma once
// The head of a model, held for as long as it is read.

#include <memory>

#include "retort/eval/score.h"
#include "retort/shard/acquired_unit.h"

namespace retort::eval {

/// A scorer that keeps the head unit of its parameters acquired, unless it reads a copy of its own.
class HeldHead : public HeadScorer {
 public:
  /// `parameters` outlive it.  `num_tokens`: as of HeadScorer.
  explicit HeldHead(shard::Parameters& parameters, std::int64_t num_tokens = 0);

 private:
  HeldHead(shard::Parameters& parameters, std::shared_ptr<const shard::AcquiredUnit> unit,
           std::int64_t num_tokens);

  std::shared_ptr<const shard::AcquiredUnit> unit_;  ///< null: HeadScorer has widened what it reads
};

}  // namespace retort::eval
