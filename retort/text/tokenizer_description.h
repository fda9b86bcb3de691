#pragma once
// What a model's tokenizer does, in words, and what other programs make of the same files.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "retort/text/tokenizer.h"

namespace retort::text {

struct TokenizerDescription {
  std::string file;                ///< where it stands, for example tokenizer.json
  std::vector<std::string> steps;  ///< from text to ids; a known pattern by its name
  std::vector<std::string> notes;  ///< whole sentences: where transformers 5.23 gives other ids, or rows lack
};

/// What transformers does with the tokenizers of a family, whatever tokenizer.json says.
struct TokenizerHabits {
  std::string tokenizer_class = "TokenizersBackend";  ///< that it takes where the files name none
  bool tokenizer_class_is_fixed = false;              ///< whatever they name
  bool cuts_by_tekken = false;  ///< it warns where another expression cuts text for a large vocabulary
  std::int64_t rows = 0;        ///< of the model's embedding; 0: not known
};

/// Which token has no row in an embedding of so many rows, and what to do, without a full stop; empty where
/// all have one.  Special tokens are none of those: text gives them only where it holds their names.
std::string which_lacks_a_row(const Tokenizer& tokenizer, std::int64_t rows);
/// The first special token without a row, as a sentence without a full stop; empty where all have one.
std::string special_without_row(const Tokenizer& tokenizer, std::int64_t rows);

/// Of a model directory or a GGUF file.  Throws what Tokenizer::from_file throws.
TokenizerDescription describe_tokenizer(const std::filesystem::path& path,
                                        const TokenizerHabits& habits = {});

}  // namespace retort::text
