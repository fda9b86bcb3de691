#pragma once
// o_proj and down_proj as compensation makes them, for candidates that are only masked, so that a search
// compares what will be left and not what compensation gives back.  Fitted to the whole model's inputs X, of
// which a candidate keeps X_K: the least squares of least_squares.h then need nothing of the candidate but
// the list of what it keeps, so one pass over the text is enough for all candidates.  compensate.h, which
// makes the result, sees besides what removals before the layer, and of hidden features, do to its inputs.
//
// Shape legend: D outputs of a layer, C its inputs.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "retort/base/files.h"
#include "retort/calibrate/text.h"
#include "retort/calibrate/walk.h"
#include "retort/comm/group.h"
#include "retort/compress/compensate.h"
#include "retort/compress/least_squares.h"
#include "retort/model/recent_tensors.h"
#include "retort/model/stored_tensors.h"
#include "retort/model/weights.h"
#include "retort/record/observer.h"

namespace retort::compress {

/// The bytes that CompensatedLayers keeps in memory, at most.
struct CompensatedBytes {
  std::int64_t sums = 0;     ///< beyond kSumsBytes they are in a file, and these are of one block
  std::int64_t weights = 0;  ///< those of recent candidates' weights
};
CompensatedBytes compensated_bytes(const architecture::Config& config, std::int64_t item_bytes);
inline constexpr std::int64_t kSumsBytes = std::int64_t{1} << 30, kRecentWeightsBytes = std::int64_t{1} << 30;

class CompensatedLayers {
 public:
  struct Memory {
    std::int64_t sums_bytes = kSumsBytes;  ///< beyond it they are in a file in `scratch`
    base::Path scratch = {};               ///< empty: always in memory
    base::Path hidden_scratch = {};        ///< folder for hidden states; empty: in memory
    std::int64_t weights_bytes =
        kRecentWeightsBytes;  ///< room for the last ones, between 2 and 32 candidates' worth
  };
  /// Sums block after block.  The sums are (inputs of o_proj)^2 + (inputs of down_proj)^2 numbers
  /// for each block, twice, for the text that is fitted to and that which judges.  `input` must
  /// outlive this.  Ranks of a group share the text, and all have the sums; then it is collective.  Throws
  /// ValidationError naming the layer for inputs that are not finite,
  /// StorageError, StoppedError.
  CompensatedLayers(const model::Weights& input, const FitSources& sources,
                    const CompensationOptions& options, const Memory& memory, record::Observer& observer,
                    comm::Group* group = nullptr);

  /// Of the room for the last weights.
  std::int64_t used_bytes() const { return known_.bytes(); }

  /// `layer`: output or down.  The layer's weight with 0 in the columns that are not in `kept`, rising.
  /// Undefined: leave it as it is, because no held-out error falls or the layer is sparse.  Equal for equal
  /// `kept`, whatever was asked before: a bounded memory of the last ones only saves time.  Throws
  /// StorageError.
  at::Tensor weight_DC(std::int64_t block, architecture::Role layer, const std::vector<std::int64_t>& kept);

 private:
  using Key = std::tuple<std::int64_t, architecture::Role, std::vector<std::int64_t>>;
  /// Passes all batches through a block.
  void collect(calibrate::Walk& walk, const FitText& text, comm::Group* group, record::Observer& observer);
  void keep_sums(std::int64_t block, architecture::Role layer, const at::Tensor& fit_CC,
                 const at::Tensor& guard_CC);
  at::Tensor fitted(std::int64_t block, architecture::Role layer,
                    const std::vector<std::int64_t>& kept) const;

  const model::Weights& input_;
  std::optional<double> dampening_fraction_;
  std::int64_t fitted_tokens_ = 0;
  model::StoredTensors sums_;
  std::map<std::pair<std::int64_t, architecture::Role>, std::size_t>
      places_;  // in sums_; what judges is behind
  model::RecentTensors<Key> known_;
};

}  // namespace retort::compress
