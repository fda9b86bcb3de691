#pragma once
// A model as a GGUF file, which llama.cpp and what is built on it load.

#include <cstddef>
#include <string>
#include <vector>

#include "retort/architecture/config.h"
#include "retort/base/files.h"
#include "retort/io/weight_files.h"
#include "retort/publish/gguf_tensors.h"
#include "retort/publish/gguf_types.h"

namespace retort::publish {

/// A model with blocks as its architecture takes them, and how its tensors are stored.
struct GgufModelToWrite {
  architecture::Config config;
  const io::WeightFiles& weights;
  base::Path directory;  ///< of tokenizer and chat templates, a GGUF file too; names the model in messages
  std::string name;      ///< general.name
  const GgufTypes& types;
};

/// Throws ModelError for a decoder or a tokenizer that GGUF has no words for.
void require_gguf_says(const architecture::Config& config, const base::Path& tokenizer_from);

struct WrittenGguf {
  std::vector<base::Path> files;
  QuantisedValues values;
};

/// Writes `path`, or parts of at most `max_part_bytes` of tensors beside it, and reads it back.  Throws
/// ModelError, before anything is written, for a family that has no architecture in GGUF, a tokenizer that
/// GGUF cannot say or a row that is no multiple of its type's block, and after it where the file, read back,
/// would compute something else; StorageError.
WrittenGguf write_gguf_model(const GgufModelToWrite& model, const base::Path& path,
                             std::size_t max_part_bytes);

}  // namespace retort::publish
