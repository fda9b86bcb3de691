#pragma once
// Models whose distributions are compared must mean the same by every id.

#include <cstdint>
#include <string>

#include "retort/base/files.h"

namespace retort::pipeline {

/// A model's name in messages, and where its tokenizer.json lies.
struct NamedTokenizer {
  std::string name;
  base::Path path;  ///< a model directory or a tokenizer.json
};

/// Returns how many ids are tokens, for both the same: rows of a head beyond them are padding.  Throws
/// ModelError that names the first id that does not stand for the same bytes; `who` begins the message.
std::int64_t require_same_tokens(const std::string& who, const NamedTokenizer& student,
                                 const NamedTokenizer& teacher);

}  // namespace retort::pipeline
