#pragma once
// Requests as ids, exactly as the Hugging Face backend of lm-evaluation-harness 0.4.13 encodes them.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "retort/tasks/requests.h"
#include "retort/text/tokenizer.h"

namespace retort::tasks {

struct EncodeOptions {
  /// Most positions of the model, or fewer.
  std::int64_t max_length = 2048;
  std::optional<std::int32_t> bos, eos;  ///< as tokenizer_config.json names them
  /// Whether special tokens are added; absent: as the tokenizer adds them.
  std::optional<bool> add_special_tokens;
};

/// Ids of which the last `scored` are judged: the model reads all but the last id.  At most max_length + 1.
struct Window {
  std::vector<std::int32_t> ids;
  std::int64_t scored = 0;
  std::int64_t cut = 0;  ///< ids of the context that were left out at its beginning
};

/// A context for generation.
struct Prompt {
  std::vector<std::int32_t> ids;
  std::int64_t cut = 0;  ///< ids that were left out at the beginning
};

class Encoder {
 public:
  /// Throws UsageError for a model that has neither a begin nor an end token, or no length.
  Encoder(text::Tokenizer tokenizer, EncodeOptions options);

  /// A context with its continuation.  Throws DataError for a continuation without ids or longer than the
  /// model; `where` names the document.
  Window pair(const std::string& context, const std::string& continuation, const std::string& where) const;
  /// A whole text in windows that judge each id once; none for a text without ids.
  std::vector<Window> rolling(const std::string& text) const;
  /// Cut at its beginning, so that max_tokens more fit.  Throws DataError where none would be left.
  Prompt prompt(const std::string& context, std::int64_t max_tokens, const std::string& where) const;

  /// What ends an answer: `until`, and the text of the end token.
  std::vector<std::string> stops(const std::vector<std::string>& until) const;
  /// What precedes a text without context: the begin token, else the end token.
  std::int32_t prefix_token() const { return prefix_; }
  const text::Tokenizer& tokenizer() const { return tokenizer_; }
  const EncodeOptions& options() const { return options_; }

 private:
  std::vector<std::int32_t> encode(const std::string& text) const;

  text::Tokenizer tokenizer_;
  EncodeOptions options_;
  std::int32_t prefix_ = 0;
  std::string prefix_text_;
};

/// The answer in a generated text: what stands before the first of each stop, one after the other.
std::string before_stops(std::string text, const std::vector<std::string>& stops);

}  // namespace retort::tasks
