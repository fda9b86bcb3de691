#pragma once
// A model's weights as texts are made with them: packed for products of any number of rows.
//
// Shape legend: N tokens, D hidden, V vocabulary.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "retort/architecture/config.h"
#include "retort/model/block.h"
#include "retort/model/head.h"
#include "retort/model/weights.h"
#include "retort/ops/packed_linear.h"
#include "retort/shard/parameters.h"

namespace retort::eval {

/// Whether a rank holds units that it gathers from others, or gathers them whenever they are used.
enum class GatheredUnits { again, held };

class TextWeights {
 public:
  /// Packs the units of `parameters`, which outlive it: once where they are resident or held, else whenever
  /// they are used.  Collective over the ranks that gather units from each other; of held units the
  /// constructor alone.
  explicit TextWeights(shard::Parameters& parameters, GatheredUnits gathered = GatheredUnits::again);
  /// Reads a unit after the other and packs it, so that never all of them are in memory unpacked.  Throws
  /// ModelError as `source` does.
  TextWeights(const model::UnitSource& source, at::ScalarType dtype, at::Device device);

  const architecture::Config& config() const { return config_; }
  /// Of what blocks compute with.
  at::TensorOptions options() const { return options_; }

  /// The types in which the matrices lie, "bf16" or "bf16, fp32": what a token reads depends on it.  Empty
  /// where they do not stay in memory.
  std::string packing() const;

  /// Rows of the embedding, [N, D].  Collective as the constructor, and so are those below.
  at::Tensor embedded(const at::Tensor& ids_N);
  /// `act` may use the weights while it runs.
  void with_block(std::size_t block, const std::function<void(const model::BlockWeights&)>& act);
  /// Logits [N, V] of outputs of the last block, float32 (float64 of float64).  On a CPU a row has the bits
  /// that it gets alone.
  at::Tensor logits(const at::Tensor& hidden_ND);

 private:
  struct Head {
    at::Tensor norm_D;  ///< in the type of the logits
    ops::PackedLinear matrix;
  };

  model::BlockWeights packed_block(std::size_t block, const at::Tensor& flat) const;
  Head packed_head(const at::Tensor& flat) const;

  architecture::Config config_;
  architecture::Layout layout_;
  at::TensorOptions options_;
  shard::Parameters* gathered_ = nullptr;  ///< where the units do not stay in memory
  at::Tensor embedding_VD_;                ///< these where they do
  std::vector<model::BlockWeights> blocks_;
  Head head_;
};

}  // namespace retort::eval
