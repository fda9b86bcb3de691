#pragma once
// tokenizer.json as HF tokenizers reads it: the same ids and the same text, for the kinds of tokenizer that
// language models of the Llama family have (byte-level BPE, SentencePiece-style BPE).  What is not supported
// is refused by name.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "retort/text/added_tokens.h"

namespace retort::text {

inline constexpr std::size_t kLargestTokenizerFile = std::size_t{1} << 27;

/// Immutable and cheap to copy; all functions may be called from several threads at once.
class Tokenizer {
 public:
  /// Reads a tokenizer.json, that of a model directory (also made of its tekken.json or tokenizer.model), or
  /// what a GGUF file says of its tokenizer.  The file's truncation and padding are not applied.  Throws
  /// ModelError (invalid, hostile or not supported) or StorageError (cannot be read).
  static Tokenizer from_file(const std::filesystem::path& path);

  /// Ids of `text`; `add_special_tokens`: with what the post-processor puts around one sequence.  Invalid
  /// UTF-8 counts as U+FFFD, one for each maximal invalid part.  Time is n log n at worst.  Throws DataError
  /// above 2 GiB.
  std::vector<std::int32_t> encode(std::string_view text, bool add_special_tokens = true) const;

  /// The same of text in which no added token is looked for, and with nothing around it.
  std::vector<std::int32_t> encode_as_plain_text(std::string_view text) const;

  /// Text of `ids`, always valid UTF-8.  Throws DataError for an id outside the vocabulary.
  std::string decode(std::span<const std::int32_t> ids, bool skip_special_tokens = true) const;

  /// Whether ids before `id`, where they have text, keep it whatever follows; false where decode() leaves it
  /// out.  Throws as decode().
  bool settles_text_before(std::int32_t id) const;
  /// decode() of all ids is that of those before, and this of `ids`, where the first of them settles it.
  std::string decode_rest(std::span<const std::int32_t> ids) const;

  /// 1 + the largest id.
  std::int64_t vocab_size() const;
  std::optional<std::int32_t> token_to_id(std::string_view token) const;
  /// Throws DataError for an id outside the vocabulary.
  std::string id_to_token(std::int32_t id) const;
  /// The bytes of text that an id stands for, an added token for its content; empty where it names no token.
  /// In a SentencePiece vocabulary U+2581 stands for a space and <0xNN> for a byte.
  std::optional<std::string> token_bytes(std::int32_t id) const;

  /// Whether decode() leaves an id out with the special tokens; false where it names no token.
  bool is_special(std::int32_t id) const;

  /// Tokens that are looked for in text before the model sees it, in the order of the file.
  std::vector<AddedToken> added_tokens() const;

  /// What the post-processor puts before and after one sequence.
  std::vector<std::int32_t> special_prefix() const;
  std::vector<std::int32_t> special_suffix() const;

 private:
  struct State;
  explicit Tokenizer(std::shared_ptr<const State> state) : state_(std::move(state)) {}

  std::shared_ptr<const State> state_;
};

}  // namespace retort::text
