#pragma once
// tekken.json, in which newer models of Mistral have their tokenizer.

#include <string>

#include "retort/base/json.h"

namespace retort::io {

/// The text of the tokenizer.json that gives the same ids: ranks become merges, special tokens come first,
/// and a text begins with <s>.  `where` names the file.  Throws ModelError: no such file, ranks with holes, a
/// token twice, bytes that are not base64.
std::string tokenizer_json_of_tekken(const base::Json& json, const std::string& where);

}  // namespace retort::io
