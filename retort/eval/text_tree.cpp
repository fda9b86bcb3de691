#include "retort/eval/text_tree.h"

#include <algorithm>
#include <iterator>

#include "retort/base/index.h"

namespace retort::eval {
namespace {

using base::to_size;
using Texts = std::span<const std::span<const std::int32_t>>;

// Neighbours that begin with the pieces up to `parent`, which end at `position`.
struct Neighbours {
  std::size_t first, end;
  std::int64_t position, parent;
};

std::int64_t common_tokens(std::span<const std::int32_t> a, std::span<const std::int32_t> b) {
  return std::ranges::mismatch(a, b).in1 - a.begin();
}

class Growth {
 public:
  Growth(Texts texts, bool share) : texts_(texts), share_(share) { tree_.ends.resize(texts.size()); }

  TextTree grown() {
    std::vector<Neighbours> open{{0, texts_.size(), 0, -1}};
    while (!open.empty()) {
      const auto next = open.back();
      open.pop_back();
      split(next, open);
    }
    put_beginnings_first();
    lay_out();
    return std::move(tree_);
  }

 private:
  // Makes a piece of what all begin with, where that is worth it, and leaves the rest to `open`.
  void split(Neighbours next, std::vector<Neighbours>& open) {
    if (next.first == next.end) return;
    // In their order, the first and the last differ the soonest.
    const auto common = common_tokens(texts_[next.first], texts_[next.end - 1]);
    const auto length = [&](std::size_t text) { return std::ssize(texts_[text]); };
    auto behind = next.first;
    while (behind < next.end && length(behind) == common) ++behind;
    const auto texts = static_cast<std::int64_t>(next.end - next.first);
    if (behind < next.end && share_ && (texts - 1) * (common - next.position) >= kLeastSavedTokens) {
      next.parent = put(next, common);
      next.position = common;
    }
    if (behind > next.first) {
      const auto end = common > next.position ? put(next, common) : next.parent;
      std::fill(tree_.ends.begin() + static_cast<std::ptrdiff_t>(next.first),
                tree_.ends.begin() + static_cast<std::ptrdiff_t>(behind), end);
    }
    for (auto first = behind; first < next.end;) {
      auto end = first + 1;
      const auto token = texts_[first][to_size(common)];
      while (end < next.end && texts_[end][to_size(common)] == token) ++end;
      open.push_back({first, end, next.position, next.parent});
      first = end;
    }
  }

  std::int64_t put(const Neighbours& of, std::int64_t end) {
    tree_.pieces.push_back({of.parent, of.position, end - of.position});
    text_of_.push_back(of.first);
    return std::ssize(tree_.pieces) - 1;
  }

  void put_beginnings_first() {
    std::vector<std::size_t> order;
    for (const bool begins : {true, false})
      for (std::size_t piece = 0; piece < tree_.pieces.size(); ++piece)
        if ((tree_.pieces[piece].parent < 0) == begins) order.push_back(piece);
    std::vector<std::int64_t> place(order.size());
    for (std::size_t i = 0; i < order.size(); ++i) place[order[i]] = static_cast<std::int64_t>(i);
    const auto moved = [&](std::int64_t piece) { return piece < 0 ? piece : place[to_size(piece)]; };
    std::vector<TreePiece> pieces;
    std::vector<std::size_t> texts;
    for (const auto piece : order) {
      pieces.push_back(tree_.pieces[piece]);
      pieces.back().parent = moved(pieces.back().parent);
      texts.push_back(text_of_[piece]);
    }
    tree_.pieces = std::move(pieces);
    text_of_ = std::move(texts);
    for (auto& end : tree_.ends) end = moved(end);
  }

  void lay_out() {
    for (std::size_t i = 0; i < tree_.pieces.size(); ++i) {
      auto& piece = tree_.pieces[i];
      piece.first_row = std::ssize(tree_.ids);
      const auto ids = texts_[text_of_[i]].subspan(to_size(piece.position), to_size(piece.tokens));
      tree_.ids.insert(tree_.ids.end(), ids.begin(), ids.end());
    }
  }

  Texts texts_;
  bool share_;
  TextTree tree_;
  std::vector<std::size_t> text_of_;  // by piece: one that has it
};

}  // namespace

std::vector<std::int64_t> TextTree::path_to(std::int64_t piece) const {
  std::vector<std::int64_t> path;
  for (; piece >= 0; piece = pieces[to_size(piece)].parent) path.push_back(piece);
  std::ranges::reverse(path);
  return path;
}

std::vector<std::int64_t> TextTree::last_rows(std::size_t text, std::int64_t count) const {
  std::vector<std::int64_t> rows;
  for (auto piece = ends[text]; piece >= 0 && std::ssize(rows) < count;
       piece = pieces[to_size(piece)].parent) {
    const auto& of = pieces[to_size(piece)];
    for (auto row = of.tokens; row > 0 && std::ssize(rows) < count; --row)
      rows.push_back(of.first_row + row - 1);
  }
  std::ranges::reverse(rows);
  return rows;
}

TextTree tree_of(Texts texts, bool share) {
  return Growth(texts, share).grown();
}

}  // namespace retort::eval
