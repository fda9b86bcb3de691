#pragma once
// Texts as a tree: what several of them begin with stands there once, and goes through a model once.

#include <cstdint>
#include <span>
#include <vector>

namespace retort::eval {

/// Tokens that follow each other, behind those of the pieces above.
struct TreePiece {
  std::int64_t parent = -1;  ///< -1: a text begins with it
  std::int64_t position = 0, tokens = 0;
  std::int64_t first_row = 0;  ///< in the tree's ids
};

struct TextTree {
  std::vector<std::int32_t> ids;   ///< of all pieces, one after the other
  std::vector<TreePiece> pieces;   ///< those without a parent first; a parent before what hangs on it
  std::vector<std::int64_t> ends;  ///< by text: the piece that it ends with

  /// Rows of the last `count` tokens of a text, in their order.
  std::vector<std::int64_t> last_rows(std::size_t text, std::int64_t count) const;
  /// A piece and those above it, the first of a text first.
  std::vector<std::int64_t> path_to(std::int64_t piece) const;
};

/// Tokens that a piece of several texts saves, at least: less is not worth an attention of its own.
inline constexpr std::int64_t kLeastSavedTokens = 24;

/// `texts` in lexicographical order, none of them empty.  Those that are equal always stand there once; with
/// `share` false nothing else does.
TextTree tree_of(std::span<const std::span<const std::int32_t>> texts, bool share = true);

}  // namespace retort::eval
