#pragma once
// The weights of a model as tensors of a GGUF file.

#include <cstdint>
#include <string>
#include <vector>

#include "retort/architecture/config.h"
#include "retort/io/gguf_architecture.h"
#include "retort/io/gguf_write.h"
#include "retort/io/weight_files.h"
#include "retort/publish/gguf_types.h"

namespace retort::publish {

/// Of the values in quantised types, counted when they are written.
struct QuantisedValues {
  std::int64_t all = 0;
  std::int64_t kept = 0;  ///< in the very blocks of GgufTypes::like
};

/// In the order embedding, blocks, norm, head; they read `weights` when they are written, row by row, and
/// count then.  Throws ModelError for a tensor that the architecture does not have, and while writing for
/// values that are not finite.
std::vector<io::GgufTensorToWrite> gguf_tensors(const architecture::Config& config,
                                                const io::WeightFiles& weights,
                                                const io::GgufArchitecture& architecture,
                                                const GgufTypes& types, QuantisedValues& counted,
                                                const std::string& where);

}  // namespace retort::publish
