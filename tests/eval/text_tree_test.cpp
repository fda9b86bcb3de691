#include "retort/eval/text_tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "retort/base/index.h"
#include "retort/base/random.h"

namespace retort {
namespace {

using Texts = std::vector<std::vector<std::int32_t>>;

eval::TextTree grown(Texts& texts, bool share = true) {
  std::ranges::sort(texts);
  std::vector<std::span<const std::int32_t>> views(texts.begin(), texts.end());
  return eval::tree_of(views, share);
}

void expect_whole(const Texts& texts, const eval::TextTree& tree) {
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const auto rows = tree.last_rows(i, std::ssize(texts[i]));
    std::vector<std::int32_t> ids;
    for (const auto row : rows) ids.push_back(tree.ids[base::to_size(row)]);
    EXPECT_EQ(ids, texts[i]);
    EXPECT_EQ(tree.last_rows(i, 1), std::vector(1, rows.back()));
  }
  bool hangs = false;
  for (std::size_t i = 0; i < tree.pieces.size(); ++i) {
    const auto& piece = tree.pieces[i];
    EXPECT_LT(piece.parent, static_cast<std::int64_t>(i));
    EXPECT_FALSE(hangs && piece.parent < 0) << "a beginning stands behind a piece that is none";
    hangs = piece.parent >= 0;
    if (!hangs) continue;
    const auto& parent = tree.pieces[base::to_size(piece.parent)];
    EXPECT_EQ(piece.position, parent.position + parent.tokens);
  }
}

// A question of 30 tokens, four answers, and one of them asked twice.
TEST(TextTree, WhatTextsBeginWithStandsOnce) {
  std::vector<std::int32_t> question(30);
  std::iota(question.begin(), question.end(), 100);
  Texts texts;
  for (const std::int32_t answer : {1, 2, 3, 3}) {
    texts.push_back(question);
    texts.back().insert(texts.back().end(), {answer, 7});
  }
  texts.push_back(question);
  const auto tree = grown(texts);
  expect_whole(texts, tree);
  EXPECT_EQ(tree.ids.size(), 30u + 3 * 2);
  EXPECT_EQ(tree.pieces.size(), 4u);
}

TEST(TextTree, AShortBeginningIsNotWorthAPieceOfItsOwn) {
  Texts texts{{1, 2, 3}, {1, 2, 4}, {1, 2}};
  const auto tree = grown(texts);
  expect_whole(texts, tree);
  EXPECT_EQ(tree.pieces.size(), 3u);
  for (const auto& piece : tree.pieces) EXPECT_EQ(piece.parent, -1);
}

TEST(TextTree, WithoutSharingEachTextHasAPiece) {
  Texts texts(3, std::vector<std::int32_t>(40, 5));
  texts[1].push_back(6);
  const auto tree = grown(texts, false);
  expect_whole(texts, tree);
  EXPECT_EQ(tree.pieces.size(), 2u) << "equal texts stand there once";
}

TEST(TextTree, HoldsAnyTexts) {
  base::Random random(3, 1);
  for (int round = 0; round < 50; ++round) {
    Texts texts;
    for (int i = 0; i < 40; ++i) {
      std::vector<std::int32_t> text;
      const auto length = 1 + random.next_below(60), choices = 1 + random.next_below(3);
      for (std::uint64_t token = 0; token < length; ++token)
        text.push_back(static_cast<std::int32_t>(random.next_below(choices)));
      texts.push_back(std::move(text));
    }
    for (const bool share : {true, false}) {
      SCOPED_TRACE(share);
      expect_whole(texts, grown(texts, share));
    }
  }
}

}  // namespace
}  // namespace retort
