#pragma once
// Which layers a sparsify stage works on, in the order in which a block computes them.

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "retort/architecture/layout.h"
#include "retort/model/block.h"
#include "retort/model/sparsity.h"
#include "retort/model/weights.h"
#include "retort/sparsify/options.h"

namespace retort::sparsify {

/// Layers of one input share its Hessian and its factor.
struct LayerGroup {
  model::Tap tap;
  std::vector<const architecture::Tensor*> layers;  ///< tensors of the model's layout
};

/// Tensors of a layout that the options name, by block and layer; empty lists name all.
std::vector<const architecture::Tensor*> chosen_tensors(const architecture::Layout& layout,
                                                        const SparsifyOptions& options);

class ChosenLayers {
 public:
  /// The layout of `weights` must outlive this.  Throws UsageError: unknown layer, block out of range, a
  /// block size or dampening that is none, columns that are no multiple of the pattern's group, another
  /// pattern than the model already has.
  ChosenLayers(const model::Weights& weights, const SparsifyOptions& options);

  /// How many there are.
  std::int64_t count() const;
  /// Whether the options name this block, and the last one that they name.
  bool names_block(std::int64_t block) const;
  std::int64_t last_block() const;
  /// Groups of a block without those that have no layer.
  std::vector<LayerGroup> groups(std::int64_t block) const;
  bool contains(const std::string& name) const { return names_.contains(name); }
  /// Leaves a layer as it is.
  void remove(const std::string& name) { names_.erase(name); }

 private:
  const architecture::Layout& layout_;
  std::vector<std::int64_t> blocks_;
  std::set<std::string> names_;
};

}  // namespace retort::sparsify
