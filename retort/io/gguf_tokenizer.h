#pragma once
// The tokenizer in a GGUF file's metadata, written as the files that Hugging Face's tools read.

#include <map>
#include <string>

#include "retort/io/gguf_metadata.h"

namespace retort::io {

/// tokenizer.json: byte-level BPE (tokenizer.ggml.model gpt2) or SentencePiece-style BPE (llama).  Throws
/// ModelError where there is no tokenizer, or one whose kind or way to cut text is not known.
std::string gguf_tokenizer_json(const MetadataReader& metadata);

/// tokenizer.json, tokenizer_config.json and chat templates by name; nothing without a tokenizer.
std::map<std::string, std::string> gguf_tokenizer_files(const MetadataReader& metadata);

}  // namespace retort::io
