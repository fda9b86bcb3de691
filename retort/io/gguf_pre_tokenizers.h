#pragma once
// The names in tokenizer.ggml.pre, each for a way to cut text before byte-level BPE.

#include <span>
#include <string_view>

#include "retort/io/tokenizer_json.h"

namespace retort::io {

/// What a name stands for.
struct PreTokenizer {
  std::string_view name;
  std::span<const std::string_view> patterns;  ///< none: GPT-2's, which ByteLevel has itself
  SingleDigits digits = SingleDigits::no;
  bool ignore_merges = false;  ///< a piece that is a token is taken whole
  bool bos = false;            ///< begin-of-text stands in front unless the file says otherwise
  bool composed = false;       ///< text is brought to NFC first, which the file does not say
};

/// Of several names for one way the first is the one to write.
std::span<const PreTokenizer> pre_tokenizers();

}  // namespace retort::io
