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

  /// Whether tokens before `token`, where they have text, keep it whatever follows.
  bool settles_text_before(const std::string& token) const;
  /// The text of all tokens is that of those before, and this of `tokens`, where the first of them settles
  /// it. Throws as decode().
  std::string decode_rest(std::vector<std::string> tokens) const;

 private:
  enum class Kind { byte_level, byte_fallback, fuse, replace, strip, metaspace };
  struct Step {
    Kind kind;
    std::string pattern;     ///< replace: what is looked for; strip, metaspace: the character
    std::string content;     ///< replace
    std::int64_t start = 0;  ///< strip: at most so many characters
    std::int64_t stop = 0;
    bool drop_first = false;  ///< metaspace: the first token's replacement characters vanish
    bool of_whole = false;    ///< an earlier step made one token of all
  };
  void add(const Node& node);
  static Step strip_step(const Node& node);
  static Step metaspace_step(const Node& node);
  enum class Part { whole, rest };
  static void apply(const Step& step, Part part, std::vector<std::string>& tokens, std::size_t most_bytes);
  std::string decode_part(Part part, std::vector<std::string> tokens) const;
  bool cut_ends_steps();

  bool present_ = false;
  bool can_be_cut_ = true;  ///< there are tokens that settle the text before
  std::vector<Step> steps_;
  std::string who_;  // for messages
};

}  // namespace retort::text
