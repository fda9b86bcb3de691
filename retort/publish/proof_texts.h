#pragma once
// Texts that a model and what was written of it have to cut into the same ids.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "retort/base/files.h"
#include "retort/text/tokenizer.h"

namespace retort::publish {

/// Prose, digits, code, accents, other scripts, signs of several code points, and white space of every kind.
std::span<const char* const> fixed_texts();

/// One for each kind of added token, two at most, that has a row in the model: the token with letters, spaces
/// and line breaks beside it.
std::vector<std::string> texts_of_added_tokens(const text::Tokenizer& tokenizer, std::int64_t rows);

/// A short conversation in the default template of a model, on a day that is always the same; empty where
/// there is no template, or none that renders it.
std::string chat_text(const base::Path& model);

}  // namespace retort::publish
