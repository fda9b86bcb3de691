#pragma once
// Cuts normalized text into the pieces that the model merges on its own: Split by a known pattern or a
// literal, Digits, Metaspace, and ByteLevel, which comes last.

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "retort/text/node.h"
#include "retort/text/split.h"

namespace retort::text {

class PreTokenizer {
 public:
  PreTokenizer() = default;
  /// Throws ModelError for a kind, behaviour or pattern that is not known.
  explicit PreTokenizer(const std::optional<Node>& node);

  /// Whether pieces are bytes, each standing for a character of the byte-level alphabet.
  bool byte_level() const { return byte_level_; }

  /// `at_start`: the text begins where the whole input begins.  A piece lives as long as the call of `sink`.
  void apply(std::string_view text, bool at_start, const PieceSink& sink) const {
    run(0, text, at_start, sink);
  }

 private:
  struct SplitByPattern {
    KnownPattern pattern;
  };
  struct SplitAtRuns {
    RunPattern pattern;
  };
  struct SplitAtLiteral {
    std::string literal;
    Separator behaviour;
  };
  struct Digits {
    bool individual;
  };
  struct ByteLevel {
    bool add_prefix_space;
    bool use_pattern;
  };
  enum class Prepend { first, never, always };
  struct Metaspace {
    std::string replacement;
    Prepend prepend;
    bool split;
  };
  using Step = std::variant<SplitByPattern, SplitAtRuns, SplitAtLiteral, Digits, ByteLevel, Metaspace>;

  void add(const Node& node);
  static Step split_step(const Node& node);
  static Step metaspace_step(const Node& node);
  void run(std::size_t step, std::string_view text, bool at_start, const PieceSink& sink) const;
  static void cut(const Step& step, std::string_view text, bool at_start, const PieceSink& sink);

  std::vector<Step> steps_;
  bool byte_level_ = false;
};

}  // namespace retort::text
