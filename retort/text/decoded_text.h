#pragma once
// The text of ids that come one after the other.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "retort/text/tokenizer.h"

namespace retort::text {

/// Each id costs what those behind the last settled place cost, not what all do.
class DecodedText {
 public:
  explicit DecodedText(Tokenizer tokenizer) : tokenizer_(std::move(tokenizer)) {}

  /// Throws as Tokenizer::decode().
  void add(std::int32_t id);
  /// What Tokenizer::decode() says of all ids so far.
  const std::string& text() const { return text_; }
  /// Bytes of text() that no further id changes.
  std::size_t settled_bytes() const { return settled_bytes_; }

 private:
  Tokenizer tokenizer_;
  std::string text_;
  std::size_t settled_bytes_ = 0;
  std::vector<std::int32_t> open_;  ///< ids behind them
};

/// Looks for texts in one that grows, in each place once.
class TextSearch {
 public:
  /// `wanted` outlives it.
  explicit TextSearch(std::span<const std::string> wanted) : wanted_(wanted) {}

  /// Whether one of them is in a text of which `settled_bytes` do not change any more.
  bool found(std::string_view text, std::size_t settled_bytes);

 private:
  std::span<const std::string> wanted_;
  std::size_t searched_bytes_ = 0;  ///< the settled ones of the time before
};

}  // namespace retort::text
