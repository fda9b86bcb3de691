#pragma once
// Where a model has its tokenizer: tokenizer.json, or a file of another format that stands for one.

#include <cstddef>
#include <string>

#include "retort/base/files.h"

namespace retort::io {

/// What tokenizer.json says, and the name of the file in messages.
struct TokenizerText {
  std::string where, text;
};

/// tokenizer.json of a model directory, that made from a GGUF file's metadata, or the file `path` itself.
/// Without a tokenizer.json it is made of tekken.json or of tokenizer.model.  Where tokenizer_config.json
/// sets `fix_mistral_regex`, text is cut by Mistral's own expression, whatever the file says.  Throws
/// ModelError (none there, not sound, or longer than `max_bytes`) or StorageError.
TokenizerText read_tokenizer_text(const base::Path& path, std::size_t max_bytes);

/// Whether tokenizer.json of this model directory has to be written for a model made from it, since it is not
/// there or does not say how text is cut.
bool makes_tokenizer_json(const base::Path& directory);

}  // namespace retort::io
