#pragma once
// Tokens as the models take them.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "retort/chat/conversation.h"
#include "retort/data/options.h"

namespace retort::data {

/// A conversation as its model's chat template writes it.
struct ChatTokens {
  std::vector<std::int32_t> ids;
  std::vector<char> is_answer = {};          ///< of each id
  std::int64_t bytes = 0, answer_bytes = 0;  ///< of the text, and of the answers in it
  std::string text = {};
  std::vector<std::pair<std::size_t, std::size_t>> answers =
      {};  ///< first byte of the text and the one behind
};

/// Text to token ids, without special tokens, and conversations to theirs.  Called from a background thread,
/// one call at a time.
struct Encode {
  std::function<std::vector<std::int32_t>(std::string_view)> text;
  /// Throws DataError where the template refuses the conversation, ModelError where there is no template.
  std::function<ChatTokens(const chat::Conversation&)> chat = {};

  Encode() = default;
  template <typename Function>
  requires std::is_invocable_r_v<std::vector<std::int32_t>, Function, std::string_view> Encode(
      Function of_text)
      : text(std::move(of_text)) {}  // NOLINT(google-explicit-constructor)
  std::vector<std::int32_t> operator()(std::string_view of) const { return text(of); }
};

struct SpecialTokens {
  std::int32_t bos = -1;  ///< -1: the tokenizer has none
  std::int32_t eos = -1;
};

/// A position whose target is this is not part of any loss.
inline constexpr std::int32_t kNoTarget = -1;

struct Sequence {
  std::vector<std::int32_t> ids;  ///< T inputs
  std::vector<std::int32_t>
      targets;  ///< T: the token after each, or kNoTarget where that begins another document
  std::vector<std::int32_t> starts;  ///< positions in ids where a document begins; the first is always 0,
                                     ///< also when it goes on with the document of the previous sequence
  std::int64_t number = 0;           ///< of the sequence, from 0
  bool goes_on = false;              ///< the first document began in an earlier sequence
};

/// Which tokens are targets.  The special tokens that packing puts around documents have no bytes of text.  A
/// model may learn them, and no metric counts them: per token and per byte it is then about the same text.
/// Special tokens that are written in the text are text.
enum class Targets {
  learned,  ///< all
  measured  ///< those of the text
};

/// Said of a source whose documents have no target.
inline constexpr const char* kNothingToPredict =
    "': expected documents with a token to predict, found none with more than one token; give it longer "
    "documents, or cut it by another separator.";

/// Whether there is anything to predict.
bool has_target(const std::vector<Sequence>& sequences);

/// Bytes of a sequence for each of its tokens, at most.
inline constexpr std::int64_t kSequenceBytesPerToken = 3 * sizeof(std::int32_t);

/// The begin-of-text token that `bos` puts before each document; -1: none.
std::int32_t begin_of_text(Bos bos, const SpecialTokens& special);

/// A document's ids with the special tokens that packing puts around its text.
struct DocumentTokens {
  std::vector<std::int32_t> ids;
  std::size_t text_begin = 0, text_end = 0;  ///< where the ids of the text lie
  std::vector<char> counts = {};             ///< of each id, whether it is a target anywhere; empty: all are
  std::int64_t bytes = 0;                    ///< of the text
  std::int64_t counted_bytes = 0;            ///< of the text that counts

  /// Of the document alone; across documents its first token is one too.
  std::int64_t num_targets(Targets targets, bool across_documents) const;
};
DocumentTokens encode_document(std::string_view text, const PackingOptions& packing, const Encode& encode,
                               const SpecialTokens& special);

/// Throws UsageError when `packing` asks for a special token that the tokenizer lacks, or for an absurd
/// length.
void check_packing(const PackingOptions& packing, const SpecialTokens& special);

/// Tokens of consecutive documents, of which sequences are cut.
class TokenBuffer {
 public:
  /// Appends a document and forgets what was consumed.
  void append(const DocumentTokens& document);
  /// The first `length` tokens; the last has a target only if more tokens follow it here.
  Sequence front(std::size_t length, bool across_documents, Targets targets) const;
  void consume(std::size_t tokens) { position_ += tokens; }
  /// Tokens not yet consumed.
  std::size_t size() const { return tokens_.size() - position_; }

 private:
  struct Token {
    std::int32_t id;
    bool begins_document, is_text, counts;
  };
  std::vector<Token> tokens_;
  std::size_t position_ = 0;
};

}  // namespace retort::data
