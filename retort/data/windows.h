#pragma once
// Text for evaluation and for statistics: fixed windows over a split in source order, and calibration
// sequences.

#include <cstdint>
#include <deque>
#include <vector>

#include "retort/data/document_reader.h"
#include "retort/data/sequence.h"

namespace retort::data {

/// A document as evaluation tells it from others.
struct TextDocument {
  std::int64_t number = 0;  ///< within its source, held out or not
  std::uint64_t hash = 0;   ///< XXH3 64-bit of its UTF-8 text
  std::int64_t bytes = 0;   ///< of its text
};

struct WindowOptions {
  std::int64_t context = 512;  ///< tokens of a window
  std::int64_t overlap_tokens =
      1;                     ///< 1: each window begins with the last token of the one before, so that every
                             ///< token but the first is a target exactly once; 0: disjoint windows
  std::int64_t tokens = 0;   ///< no document is begun once there are so many; 0: the whole split
  Bos bos = Bos::automatic;  ///< begin-of-text token before each document
  bool eos = false;          ///< end-of-text token after each document
  bool attend_across_documents = true;  ///< a window is one text, as other programs see it
};

/// The documents of a split, joined in source order and cut into windows; the last may be shorter.
/// Conversations are windows of their own, cut where they are longer: each window but the first reaches back
/// so that it is full, and every token that counts is a target once.  Those that lack one are left out.
class WindowReader {
 public:
  WindowReader(const SourceOptions& source, Split split, const WindowOptions& options, Encode encode,
               const SpecialTokens& special);

  /// Reads a window of 2 to `context` tokens, with the targets that are measured; the last is kNoTarget.
  /// False at the end.  Throws DataError, also when the split has no text.
  bool next(Sequence& window);

  /// UTF-8 bytes of the documents begun so far.  Documents are never cut by the token limit, so after the
  /// last window this is the text whose tokens are targets (with overlap 1), and bits per byte = nll / ln 2 /
  /// bytes.  Only the first token of all has bytes and is no target, where no begin-of-text token is before
  /// it.
  std::int64_t bytes() const { return bytes_; }
  /// The documents begun so far; empty ones are left out.
  const std::vector<TextDocument>& documents() const { return documents_; }
  /// Index into documents() of each target of a window, 0 where there is none.
  std::vector<std::int32_t> target_documents(const Sequence& window) const;
  std::int64_t tokens() const { return tokens_; }
  /// Bad lines, and conversations that the chat template refuses, where these are skipped.
  std::int64_t skipped_lines() const { return reader_.skipped_lines() + refused_; }
  /// Conversations without a token that counts.
  std::int64_t unanswered() const { return unanswered_; }

 private:
  bool pull();
  bool next_of_conversation(Sequence& window);
  [[noreturn]] void refuse_empty() const;

  DocumentReader reader_;
  Split split_;
  WindowOptions options_;
  PackingOptions packing_;
  Encode encode_;
  SpecialTokens special_;
  TokenBuffer buffer_;
  std::int64_t windows_ = 0;
  std::int64_t bytes_ = 0;
  std::vector<TextDocument> documents_;
  std::vector<std::int64_t> ends_;  // of documents, in tokens of the joined text
  std::int64_t tokens_ = 0;
  std::deque<Sequence> conversation_;  // windows of the last one
  std::int64_t refused_ = 0, unanswered_ = 0;
};

/// The windows of ids that are a text of their own: all but the first are targets once, where `counts`, empty
/// for all, is not 0.  Windows without a target are left out.
std::deque<Sequence> windows_of(const std::vector<std::int32_t>& ids, const std::vector<char>& counts,
                                std::int64_t context);

/// The first `count` packed sequences of one source's training part for a seed: text for statistics.  Fewer
/// when the source has not enough text, none when that does not fill one: it is not repeated.
/// `skipped_lines`, where given, receives the bad lines and documents passed over.  Where documents are not
/// cut, the sequences are not padded and may be shorter, and have `count` times their length at most in all.
std::vector<Sequence> calibration_sequences(const SourceOptions& source, const PackingOptions& packing,
                                            const Encode& encode, const SpecialTokens& special,
                                            std::uint64_t seed, std::int64_t count,
                                            std::int64_t* skipped_lines = nullptr);

}  // namespace retort::data
