#pragma once
// The weights of a model as tensors of a GGUF file.

#include <functional>
#include <string>
#include <vector>

#include "retort/architecture/config.h"
#include "retort/io/gguf_architecture.h"
#include "retort/io/gguf_write.h"
#include "retort/io/weight_files.h"

namespace retort::publish {

/// The type of a tensor with this GGUF name and shape, slowest dimension first.
using GgufTypeOf =
    std::function<io::GgmlType(const std::string& name, const std::vector<std::int64_t>& shape)>;

/// In the order embedding, blocks, norm, head; they read `weights` when they are written, row by row.  Throws
/// ModelError for a tensor that the architecture does not have, and while writing for values that are not
/// finite.
std::vector<io::GgufTensorToWrite> gguf_tensors(const architecture::Config& config,
                                                const io::WeightFiles& weights,
                                                const io::GgufArchitecture& architecture,
                                                const GgufTypeOf& type_of, const std::string& where);

}  // namespace retort::publish
