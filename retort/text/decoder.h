#pragma once
// From token strings back to text.

#include <optional>
#include <string>
#include <vector>

#include "retort/text/node.h"

namespace retort::text {

/// The byte of a token <0xNN>; -1 of any other.
int fallback_byte(const std::string& token);

class Decoder {
 public:
  Decoder() = default;
  /// Throws ModelError for a kind that is not known.
  explicit Decoder(const std::optional<Node>& node);

  /// Without a decoder tokens are joined by spaces, as HF tokenizers does.  Throws ModelError where the steps
  /// make the text much longer (GrowthLimit).
  std::string decode(std::vector<std::string> tokens) const;

 private:
  enum class Kind { byte_level, byte_fallback, fuse, replace, strip, metaspace };
  struct Step {
    Kind kind;
    std::string pattern;     ///< replace: what is looked for; strip, metaspace: the character
    std::string content;     ///< replace
    std::int64_t start = 0;  ///< strip: at most so many characters
    std::int64_t stop = 0;
    bool drop_first = false;  ///< metaspace: the first token's replacement characters vanish
  };
  void add(const Node& node);
  static Step strip_step(const Node& node);
  static Step metaspace_step(const Node& node);
  static void apply(const Step& step, std::vector<std::string>& tokens, std::size_t most_bytes);

  bool present_ = false;
  std::vector<Step> steps_;
  std::string who_;  // for messages
};

}  // namespace retort::text
