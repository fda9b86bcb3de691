#pragma once
// Files of one model directory that name other tokens than the tokenizer that is read of it.

#include <filesystem>
#include <string>
#include <vector>

namespace retort::text {

/// A sentence for each file beside tokenizer.json (tokenizer.model, added_tokens.json, tokenizer_config.json)
/// that gives tokens other ids, and for chat templates that differ.  Other programs may read these.
/// None where the tokenizer itself cannot be read.
std::vector<std::string> tokenizer_conflicts(const std::filesystem::path& directory);

}  // namespace retort::text
