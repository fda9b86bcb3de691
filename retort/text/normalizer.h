#pragma once
// What happens to text before it is split: Prepend, Replace (of a literal) and NFC, in the order of the file.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "retort/text/node.h"

namespace retort::text {

class Normalizer {
 public:
  Normalizer() = default;
  /// Throws ModelError for a kind that is not known.
  explicit Normalizer(const std::optional<Node>& node);

  bool empty() const { return steps_.empty(); }
  /// Throws ModelError where the steps make the text much longer (GrowthLimit).
  std::string apply(std::string_view text) const;

 private:
  enum class Kind { prepend, replace, nfc };
  struct Step {
    Kind kind;
    std::string pattern;
    std::string content;
  };
  void add(const Node& node);

  std::vector<Step> steps_;
  std::string who_;  // for messages
};

/// The literal of {"String": ...}; a ModelError for {"Regex": ...}, which is never run.
const std::string& literal_pattern(const Node& pattern);

/// `text` with every `pattern` (not empty) replaced, from left to right.  Ends early, and has more than
/// `most_bytes`, where the whole would have more.
std::string replace_all(std::string_view text, std::string_view pattern, std::string_view content,
                        std::size_t most_bytes = std::string::npos);

}  // namespace retort::text
