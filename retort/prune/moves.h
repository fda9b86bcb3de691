#pragma once
// The steps that a search may take from a candidate to a smaller one, and how far they reach.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "retort/architecture/kept.h"
#include "retort/calibrate/ranking.h"
#include "retort/prune/options.h"

namespace retort::prune {

/// Drop one block, or narrow one part of all blocks, or the hidden state, to one width.
struct Move {
  std::optional<architecture::PartKind> part = {};  ///< none: drop a block
  std::int64_t block = -1;                          ///< number in the input of the block that is dropped
  std::int64_t width = -1;  ///< afterwards: channels of every MLP, KV groups of every attention, hidden size
};

/// "drop block 3", "narrow MLPs to 448"
std::string describe(const Move& move);

/// Lists the moves: every block in turn, while more than one is left; then one KV group less; then
/// channels and hidden size at the next multiple of width_multiple below.
std::vector<Move> moves_from(const architecture::Kept& candidate, const PruneOptions& options);
architecture::Kept moved(const architecture::Kept& candidate, const Move& move,
                         const calibrate::UnitScores& scores);

/// What is left of a candidate whose part has this width, in one block of the input or (-1) in all of them or
/// in the hidden state: those with the highest scores stay.
architecture::Kept narrowed(const architecture::Kept& candidate, architecture::PartKind part,
                            std::int64_t block, std::int64_t width, const calibrate::UnitScores& scores);

/// Where nobody names a multiple: the least one of kUsualWidthMultiple by which the widest MLP has at most 64
/// widths, so that a search takes no more steps on a wide model than on a small one.
std::int64_t usual_width_multiple(const architecture::Config& input);

/// The widest narrowing that leaves at most `parameters`; width -1 when there is none.
Move narrowing_to(const architecture::Config& input, const architecture::Kept& candidate,
                  const PruneOptions& options, std::int64_t parameters);

/// Throws UsageError where options would remove a part that a model like this has to keep.
void require_removable(const architecture::Config& input, const PruneOptions& options);

/// The target as a number of parameters.  Throws UsageError, with the reachable range, for one that no
/// sequence of moves reaches, and for options that exclude each other or do not fit the model.
std::int64_t target_parameters(const architecture::Config& input, const PruneOptions& options);

}  // namespace retort::prune
