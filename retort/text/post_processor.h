#pragma once
// The special tokens that a tokenizer puts around one sequence.

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "retort/text/node.h"

namespace retort::text {

struct PostProcessor {
  std::vector<std::int32_t> prefix;
  std::vector<std::int32_t> suffix;

  PostProcessor() = default;
  /// `known` says whether an id names a token.  Throws ModelError for a kind that is not known, a template
  /// that does not hold the sequence exactly once, an unknown id, or far more tokens than any model has.
  PostProcessor(const std::optional<Node>& node, const std::function<bool(std::int64_t)>& known);

 private:
  void add(const Node& node, const std::function<bool(std::int64_t)>& known);
  void require_room(const Node& node, std::size_t more) const;
  void add_template(const Node& node, const std::function<bool(std::int64_t)>& known);
};

}  // namespace retort::text
