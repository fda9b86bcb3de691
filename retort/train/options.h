#pragma once
// What a recipe may say about a training stage (train, finetune, distill).

#include <cstdint>
#include <string>
#include <vector>

#include "retort/base/words.h"
#include "retort/data/options.h"
#include "retort/loss/options.h"
#include "retort/optim/options.h"

namespace retort::train {

enum class Recompute { automatic, always, never };
constexpr auto words_of(Recompute) {
  return base::words<Recompute::never>("auto", "always", "never");
}

struct BatchOptions {
  std::int64_t sequences = 4;   ///< of a micro-batch
  std::int64_t accumulate = 1;  ///< micro-batches of a step
  std::int64_t wave =
      0;  ///< micro-batches that advance together; 0: all of a step (layer-major), 1: classic accumulation
};

inline constexpr std::int64_t kRanksOfMachine = 0, kAllRanks = -1;

/// Where models lie when several ranks train: so many hold one copy between them, and every such group has a
/// copy of its own.
struct ShardOptions {
  std::int64_t student_ranks = kRanksOfMachine, teacher_ranks = kRanksOfMachine;
};

/// Texts that the student writes and learns from beside those of the sources.
struct OnPolicyOptions {
  double share = 0;        ///< of the sequences of a step; 0: it writes none
  double temperature = 1;  ///< of drawing tokens; 0: always the most likely
  double top_p = 1;        ///< only the most likely that together have this share
  std::int64_t max_new_tokens = 128;
  std::int64_t prompt_tokens = 64;  ///< of a document, with which a text begins
};

struct TrainOptions {
  std::int64_t tokens = 0;  ///< budget of the stage; rounded up to whole steps
  std::uint64_t seed = 0;
  data::PackingOptions packing;
  BatchOptions batch;
  optim::OptimOptions optim;
  std::vector<loss::LossOptions> losses;  ///< empty: cross-entropy (train, finetune), with KL (distill)
  OnPolicyOptions on_policy;
  ShardOptions shard;
  Recompute recompute = Recompute::automatic;
  std::int64_t head_rows = 0;  ///< tokens of a chunk of head and loss; 0: chosen by the plan
  std::int64_t checkpoint_every_steps = 50;
  std::int64_t keep_checkpoints = 2;
  std::int64_t evaluate_every_steps = 25;  ///< held-out loss
  std::int64_t evaluate_tokens = 8192;     ///< per source, for that loss
  bool step_profile = true;                ///< where the time of each step went is noted
};

}  // namespace retort::train
