#pragma once
// What Ollama is told of a GGUF file.

#include "retort/architecture/config.h"
#include "retort/base/files.h"

namespace retort::publish {

/// Writes `Modelfile` beside a GGUF file that was made from `model`: its context, and the tokens that end an
/// answer. Throws StorageError, or ModelError as reading the tokenizer does.
void write_modelfile(const architecture::Config& config, const base::Path& model, const base::Path& gguf);

}  // namespace retort::publish
