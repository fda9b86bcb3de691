#pragma once
// In which types the tensors of a GGUF file are stored.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "retort/architecture/config.h"
#include "retort/base/files.h"
#include "retort/io/dtype.h"
#include "retort/io/gguf_blocks.h"
#include "retort/publish/like_file.h"

namespace retort::publish {

/// The type of a tensor with this GGUF name and shape, slowest dimension first.
using GgufTypeOf =
    std::function<io::GgmlType(const std::string& name, const std::vector<std::int64_t>& shape)>;

struct GgufTypes {
  std::string name;             ///< as in names of files: "Q4_K_M", "F16"
  std::uint32_t file_type = 0;  ///< its number in general.file_type
  GgufTypeOf of;
  std::shared_ptr<const LikeFile> like = nullptr;  ///< whose blocks are taken where their values are the same
  /// Whether they hold every value of a model whose weights are of `dtype`.
  bool holds(io::Dtype dtype) const;
};

/// `asked`: "q8_0", "q4_k_m" and so on; empty: the type of weights that are `own`.  Matrices get it, as
/// llama.cpp's quantiser would choose for each; norms and biases are F32.  Throws UsageError for a type that
/// is not written.
GgufTypes gguf_types(const std::string& asked, io::Dtype own, const architecture::Config& config,
                     const std::string& where);

/// Each tensor in the type that it has in a GGUF file: block i of `config` in that of block `numbers[i]`.
/// Rows that are no whole blocks get a type that fits them, and Q4_K stands for Q2_K and Q3_K, in which
/// values cannot be rounded.  Throws ModelError for a file that is not sound, and when it is asked for a
/// tensor that the file does not have.
GgufTypes gguf_types_like(const base::Path& file, std::vector<std::int64_t> numbers);

}  // namespace retort::publish
