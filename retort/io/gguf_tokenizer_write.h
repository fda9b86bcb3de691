#pragma once
// A tokenizer.json in the metadata of a GGUF file.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "retort/base/json.h"
#include "retort/io/gguf_write.h"

namespace retort::io {

/// Ids that a model's configuration names; those without a row are left out.
struct GgufSpecialIds {
  std::optional<std::int32_t> bos = {}, pad = {};
  std::vector<std::int32_t> eos = {};  ///< the end of a text first, then of a turn and of a message
};

/// tokenizer.ggml.*, but for chat templates.  `rows` are those of the embedding: tokens fill them up.  What
/// GGUF cannot say is refused by ModelError, which names `where`: a way to cut text that has no name in
/// tokenizer.ggml.pre, merges that do not follow from scores, other tokens around a text than begin and end.
/// That added tokens take spaces beside them along is lost.
GgufEntries gguf_tokenizer_entries(const base::Json& tokenizer, std::int64_t rows, const GgufSpecialIds& ids,
                                   const std::string& where);

}  // namespace retort::io
