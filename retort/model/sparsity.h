#pragma once
// Semi-structured sparsity of saved weights: the pattern, which weights claim it (Lineage::sparse_layers),
// and masks that keep it through training.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "retort/model/weights.h"

namespace retort::model {

/// At most `kept` non-zeros among each `group` neighbouring columns of a row; 2:4 is the one that hardware
/// knows.
struct Pattern {
  std::int64_t kept = 2;
  std::int64_t group = 4;
};

/// "2:4" -> {2, 4}; throws UsageError unless it is n:m with 1 <= n < m <= 64.
Pattern parse_pattern(const std::string& text);

/// False also when the columns are no multiple of the group.
bool holds(const Pattern& pattern, const at::Tensor& weight_RC);

/// Throws ValidationError naming the first of lineage.sparse_layers that breaks lineage.pattern.
void check_pattern(const Weights& weights);
/// The same of the layers of one unit, whose values are `flat`.
void check_pattern(const architecture::Layout& layout, const Lineage& lineage, std::size_t unit,
                   const at::Tensor& flat);

/// Of `values`, elements from `begin` on of the flat layout of unit `unit`: a uint8 mask, 1 where a parameter
/// may be non-zero; undefined where no sparse layer lies among them.
at::Tensor mask_of_part(const architecture::Layout& layout, const Lineage& lineage, std::size_t unit,
                        std::int64_t begin, const at::Tensor& values);

}  // namespace retort::model
