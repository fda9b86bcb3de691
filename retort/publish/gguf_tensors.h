#pragma once
// The weights of a model as tensors of a GGUF file.

#include <cstdint>
#include <map>
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

/// The tensors that lie in the model's files, and their names in a GGUF file.  Throws ModelError for one that
/// the architecture does not have.
std::map<std::string, std::string> gguf_names(const architecture::Config& config,
                                              const io::GgufArchitecture& architecture,
                                              const std::string& where);

/// In the order embedding, blocks, norm, head; they read `weights` when they are written, row by row, and
/// count then.  Throws as gguf_names(), and ModelError while writing for values that are not finite.
std::vector<io::GgufTensorToWrite> gguf_tensors(const architecture::Config& config,
                                                const io::WeightFiles& weights,
                                                const io::GgufArchitecture& architecture,
                                                const GgufTypes& types, QuantisedValues& counted,
                                                const std::string& where);

}  // namespace retort::publish
