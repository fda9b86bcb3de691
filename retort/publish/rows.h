#pragma once
// The rows of a tensor as numbers, a few at a time.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "retort/io/gguf_blocks.h"
#include "retort/io/safetensors.h"
#include "retort/io/weight_files.h"
#include "retort/publish/stored_blocks.h"

namespace retort::publish {

/// How rows of a tensor become rows of a file.
struct RowChange {
  std::size_t rows_of_head = 0;  ///< of a query or key weight whose rows GGUF orders anew; 0: they stay
  float added = 0;               ///< to every value
};

/// The type in GGUF files of values of a dtype: f32, f16 or bf16.
io::GgmlType ggml_type_of(io::Dtype dtype);

/// Writes the values of a tensor (f32, f16 or bf16) in blocks of `type`: those of `like`, which has that
/// type, where it has such values, and rounded elsewhere.  Returns how many values came from `like`, which
/// may be null.  Throws ModelError, which names the tensor, as io::quantise().
std::int64_t write_rows(const io::WeightFiles& weights, const std::string& name, const RowChange& change,
                        io::GgmlType type, StoredBlocks* like, const io::ByteSink& sink);

/// Whether `like` has blocks for all values of a tensor.
bool are_stored(const io::WeightFiles& weights, const std::string& name, const RowChange& change,
                StoredBlocks& like);

}  // namespace retort::publish
