#pragma once
// After heads, channels or hidden features are gone, the weights behind them take over what they can: o_proj
// and down_proj of the smaller model are fitted to what the larger one's gave, layer after layer, each with
// the inputs that the already fitted layers before it produce.
//
// Shape legend: N tokens, D hidden (of the smaller model), I inputs of the layer in the input model, K of
// those kept.

#include <optional>
#include <string>
#include <vector>

#include "retort/architecture/kept.h"
#include "retort/base/files.h"
#include "retort/base/json.h"
#include "retort/calibrate/options.h"
#include "retort/calibrate/text.h"
#include "retort/compress/least_squares.h"
#include "retort/model/weights.h"
#include "retort/record/observer.h"

namespace retort::compress {

struct CompensationOptions {
  /// Ridge, as a fraction of the square of each kept input; empty: dampening_of_fit().
  std::optional<double> dampening_fraction = {};
  /// Tokens passed together: sums over many at once are products of large matrices.
  std::int64_t batch_tokens = calibrate::kCalibrationBatchTokens;
  std::int64_t head_rows = 512;  ///< tokens whose logits are computed together
  calibrate::ObjectiveWeights objective;
  base::Path hidden_scratch = {};  ///< folder for hidden states; empty: in memory
};

/// What was done to a layer.
struct FittedLayer {
  std::string name;
  bool kept = false;         ///< its fit was taken
  double held_out_gain = 0;  ///< by how much the squared error of its output fell on what judges
  bool singular = false;     ///< even the damped inputs cannot be told apart, so it stays as it was
};

struct CompensationOutcome {
  bool kept = false;        ///< the compensated model was taken
  bool each_alone = false;  ///< taken are the fits of compensated_layers.h, which were better
  double held_out_objective_before = 0, held_out_objective_after = 0;  ///< loss increase on what judges
  std::vector<FittedLayer> layers;
};
base::Json to_json(const CompensationOutcome& outcome);

/// Least squares, W' = W_K + (W X X'^T - W_K X' X'^T) (X' X'^T + lambda I)^-1 with X the larger model's
/// inputs and X' the smaller one's: for lambda = 0 the closed form W X X'^T (X' X'^T)^-1, for a large
/// lambda no change. The sums are over what is fitted to; a layer is changed only where its error on what
/// chooses falls, and the model only if the loss increase there falls.  Sparse layers stay as they are.
/// `sliced` is changed in place; its values are ones that the file type holds.  Returns nothing when no such
/// layer lost anything.  Sums and solutions are
/// float64.  Throws ValidationError naming the layer for sums that are not finite.
std::optional<CompensationOutcome> compensate(const model::Weights& input,
                                              const architecture::Kept& candidate, model::Weights& sliced,
                                              const FitSources& sources, const CompensationOptions& options,
                                              record::Observer& observer);

}  // namespace retort::compress
