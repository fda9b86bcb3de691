#pragma once
// Text cut for evaluation.

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "retort/data/windows.h"
#include "retort/eval/options.h"

namespace retort::eval {

struct WindowSettings {
  Windowing windowing = Windowing::fixed;
  std::int64_t context = 512;            ///< tokens that a model sees at most
  std::int64_t tokens = 0;               ///< no document is begun once there are so many; 0: all
  data::Bos bos = data::Bos::automatic;  ///< fixed: begin-of-text token before each document
  bool eos = false;                      ///< fixed: end-of-text token after each document
  std::int64_t overlap_tokens = 1;  ///< fixed: 1: every token but the first is a target; 0: disjoint windows
  bool attend_across_documents = true;  ///< fixed: a window is one text
};

/// A window with the document that each of its targets belongs to: an index into Windows::documents(), 0
/// where there is no target.
struct Window : data::Sequence {
  std::vector<std::int32_t> target_documents;
};

/// Windows of one source, one after the other.
class Windows {
 public:
  virtual ~Windows() = default;
  /// Reads a window of at most `context` inputs; false at the end.  Throws DataError.
  virtual bool next(Window& window) = 0;
  /// Bad lines and documents passed over so far.
  virtual std::int64_t skipped_lines() const = 0;
  /// The documents read so far, those of the windows read among them.
  virtual const std::vector<data::TextDocument>& documents() const = 0;
};

/// Conversations are windows of their own, whatever the windowing; what counts of them is as the source says.
/// Throws UsageError (absurd lengths, a special token that the tokenizer lacks) or DataError (no text).
std::unique_ptr<Windows> open_windows(const data::SourceOptions& source, data::Split split,
                                      const WindowSettings& settings, data::Encode encode,
                                      const data::SpecialTokens& special);

/// The rolling windows of one document: `prefix` predicts its first token.
std::deque<Window> rolling_windows(const std::vector<std::int32_t>& ids, std::int32_t prefix,
                                   std::int64_t context);

}  // namespace retort::eval
