// Byte-pair encoding against a plain loop over all pairs, on random vocabularies and texts: cutting and
// remembering must not change a token.

#include "retort/text/bpe.h"

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <set>
#include <utility>

#include "retort/base/random.h"
#include "retort/text/byte_level.h"
#include "retort/text/unicode.h"

namespace retort::text {
namespace {

using Ids = std::vector<std::int32_t>;
using Pair = std::pair<std::int32_t, std::int32_t>;

std::string utf8(char32_t code) {
  std::string text;
  append_utf8(text, code);
  return text;
}

struct Model {
  Vocabulary vocabulary;
  std::vector<std::string> tokens;  // by id
  std::map<Pair, MergeTable::Merge> merges;
  BpeOptions options;

  std::int32_t add(const std::string& token) {
    const auto [place, fresh] = vocabulary.emplace(token, static_cast<std::int32_t>(tokens.size()));
    if (fresh) tokens.push_back(token);
    return place->second;
  }
  std::int32_t id_or(const std::string& token, std::int32_t otherwise) const {
    const auto found = vocabulary.find(token);
    return found == vocabulary.end() ? otherwise : found->second;
  }
  Bpe bpe() const {
    MergeTable table(merges.size());
    for (const auto& [pair, merge] : merges) table.set(pair.first, pair.second, merge);
    return Bpe(vocabulary, std::move(table), options);
  }
};

void add_random_merges(Model& model, std::set<std::int32_t> parts, int count, base::Random& random) {
  for (std::uint32_t rank = 0; rank < static_cast<std::uint32_t>(count); ++rank) {
    const auto pick = [&] { return *std::next(parts.begin(), random.next_below(parts.size())); };
    const Pair pair{pick(), pick()};
    const std::string joined = model.tokens[pair.first] + model.tokens[pair.second];
    if (joined.size() > 12 || model.merges.contains(pair)) continue;
    const std::int32_t token = model.add(joined);
    parts.insert(token);
    model.merges[pair] = {rank, token};
  }
}

std::string byte_token(unsigned byte) {
  constexpr const char* kDigits = "0123456789ABCDEF";
  return std::string("<0x") + kDigits[byte / 16 % 16] + kDigits[byte % 16] + ">";
}

// The byte tokens of a character; none if one of them is missing.
Ids plain_fallback(const Model& model, const std::string& character) {
  Ids ids;
  for (const char byte : character) {
    ids.push_back(model.id_or(byte_token(static_cast<unsigned char>(byte)), -1));
    if (ids.back() < 0) return {};
  }
  return ids;
}

Ids plain_symbols(const Model& model, const std::string& piece) {
  Ids ids;
  int unknown = 0;  // tokens that wait for the next known character
  const auto flush = [&] {
    for (; unknown > 0; --unknown) ids.push_back(*model.options.unk);
  };
  for (std::size_t at = 0; at < piece.size();) {
    const std::size_t size = model.options.byte_level ? 1 : read_character(piece.data() + at).size;
    const std::string character = piece.substr(at, size);
    at += size;
    const std::int32_t id = model.id_or(
        model.options.byte_level ? utf8(byte_character(static_cast<std::uint8_t>(character[0]))) : character,
        -1);
    const Ids bytes = id < 0 && model.options.byte_fallback ? plain_fallback(model, character) : Ids();
    ids.insert(ids.end(), bytes.begin(), bytes.end());
    if (!bytes.empty()) continue;
    if (id >= 0 || !model.options.fuse_unk) flush();
    if (id >= 0) ids.push_back(id);
    if (id < 0 && model.options.unk) unknown = 1;
  }
  flush();
  return ids;
}

Ids plain_encode(const Model& model, const std::string& piece) {
  Ids ids = plain_symbols(model, piece);
  while (true) {
    MergeTable::Merge best;
    std::size_t place = 0;
    for (std::size_t i = 0; i + 1 < ids.size(); ++i) {
      const auto found = model.merges.find({ids[i], ids[i + 1]});
      if (found == model.merges.end() || found->second.rank >= best.rank) continue;
      best = found->second;
      place = i;
    }
    if (best.rank == MergeTable::kNoRank) return ids;
    ids[place] = best.token;
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(place) + 1);
  }
}

std::string random_text(const std::vector<std::string>& alphabet, std::uint64_t longest,
                        base::Random& random) {
  std::string text;
  for (std::uint64_t left = 1 + random.next_below(longest); left > 0;) {
    const std::string& character = alphabet[random.next_below(alphabet.size())];
    const std::uint64_t run = random.next_below(8) == 0 ? 1 + random.next_below(left) : 1;
    for (std::uint64_t i = 0; i < run; ++i) text += character;
    left -= run;
  }
  return text;
}

// Each text comes twice, so that its words are known the second time.
void expect_plain_ids(const Model& model, const std::vector<std::string>& alphabet, base::Random& random) {
  const Bpe bpe = model.bpe();
  BpeScratch scratch;
  for (int round = 0; round < 60; ++round) {
    const std::string text = random_text(alphabet, round % 4 == 0 ? 200 : 20, random);
    const Ids wanted = plain_encode(model, text);
    for (int pass = 0; pass < 2; ++pass) {
      Ids ids;
      bpe.encode(text, scratch, ids);
      ASSERT_EQ(ids, wanted) << testing::PrintToString(text) << ", pass " << pass;
    }
  }
}

// Characters of one to four bytes, in several stretches; the last few are in no vocabulary.
const std::vector<std::string> kCharacters = {
    "a",      "b",      "c",      "e",      "s",          "t", ".",      ",",      "\u2581",    "\u2581",
    "\u00e9", "\u03b1", "\u0436", "\u4e2d", "\U0001F600", "z", "\u0142", "\u65e5", "\U0001F680"};
constexpr std::size_t kKnown = 15;

struct Kind {
  unsigned byte_tokens = 0;  ///< <0x00> and so on
  bool unk = true;
  bool fuse_unk = true;
  bool stand_ins_merge = false;  ///< unknown and byte tokens take part in merges
};

Model random_model(const Kind& kind, int merges, base::Random& random) {
  Model model;
  std::set<std::int32_t> parts;
  const std::int32_t unk = model.add("<unk>");
  if (kind.unk) model.options.unk = unk;
  for (unsigned byte = 0; byte < kind.byte_tokens; ++byte) model.add(byte_token(byte));
  if (kind.stand_ins_merge)
    for (std::size_t id = 0; id < model.tokens.size(); ++id) parts.insert(static_cast<std::int32_t>(id));
  for (std::size_t i = 0; i < kKnown; ++i) parts.insert(model.add(kCharacters[i]));
  model.options.byte_fallback = kind.byte_tokens > 0;
  model.options.fuse_unk = kind.fuse_unk;
  add_random_merges(model, parts, merges, random);
  return model;
}

// Undoes x ^= x >> 32 and a product by an odd number.
std::uint64_t unmixed(std::uint64_t x) {
  return x ^ x >> 32;
}
std::uint64_t divided(std::uint64_t product, std::uint64_t odd) {
  std::uint64_t inverse = odd;
  for (int i = 0; i < 6; ++i) inverse *= 2 - odd * inverse;
  return product * inverse;
}

double seconds_to_fill(const std::vector<std::uint64_t>& keys) {
  const auto start = std::chrono::steady_clock::now();
  MergeTable table(keys.size());
  for (const auto key : keys)
    table.set(static_cast<std::int32_t>(key >> 32), static_cast<std::int32_t>(key), {.rank = 1, .token = 1});
  EXPECT_EQ(table.size(), keys.size());
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Pairs that all share one slot of a hash with well-known factors, as a file can bring them.
TEST(Merges, PairsThatCollideByAKnownHashTakeNoLongerThanOthers) {
  constexpr std::uint64_t kFirst = 0x9E3779B97F4A7C15ULL, kSecond = 0xD6E8FEB86659FD93ULL;
  std::vector<std::uint64_t> colliding, others;
  base::Random random(1, 0);
  for (std::uint64_t i = 1; i <= 30'000; ++i) {
    auto key = divided(unmixed(divided(i, kSecond)), kFirst);
    key ^= key >> 29 ^ key >> 58;
    colliding.push_back(key);
    others.push_back(random.next_u64());
  }
  EXPECT_LT(seconds_to_fill(colliding), 20 * seconds_to_fill(others) + 0.02);
}

TEST(Bpe, GivesTheTokensOfAPlainLoop) {
  base::Random random(23, 0);
  for (const Kind& kind :
       {Kind{}, Kind{.fuse_unk = false}, Kind{.unk = false}, Kind{.byte_tokens = 256},
        Kind{.byte_tokens = 256, .unk = false}, Kind{.byte_tokens = 0xD0},
        Kind{.byte_tokens = 0xD0, .fuse_unk = false}, Kind{.byte_tokens = 0xD0, .unk = false},
        Kind{.stand_ins_merge = true}, Kind{.byte_tokens = 256, .stand_ins_merge = true}}) {
    SCOPED_TRACE(testing::Message() << kind.byte_tokens << " byte tokens, unk " << kind.unk << ", fused "
                                    << kind.fuse_unk << ", stand-ins merge " << kind.stand_ins_merge);
    for (int merges : {0, 5, 20, 60, 150, 400})
      for (int repeat = 0; repeat < 4; ++repeat)
        expect_plain_ids(random_model(kind, merges, random), kCharacters, random);
  }
}

TEST(Bpe, GivesTheTokensOfAPlainLoopAtByteLevel) {
  base::Random random(29, 0);
  const std::vector<std::string> bytes = {
      "a", "b", "c", "e", " ", "\n", "\xC3", "\xA9", std::string(1, '\0')};
  for (int merges : {0, 5, 20, 60, 150})
    for (int repeat = 0; repeat < 4; ++repeat) {
      Model model;
      model.options.byte_level = true;
      std::set<std::int32_t> parts;
      for (const std::string& byte : bytes)
        parts.insert(model.add(utf8(byte_character(static_cast<std::uint8_t>(byte[0])))));
      add_random_merges(model, parts, merges, random);
      expect_plain_ids(model, bytes, random);
    }
}

TEST(PieceCache, TellsPiecesOfEverySizeApart) {
  base::Random random(31, 0);
  for (std::size_t size = 1; size <= PieceKey::kLongest; ++size) {
    std::string piece;
    while (piece.size() < size) piece.push_back(static_cast<char>(random.next_below(256)));
    PieceCache cache;
    const Ids ids(1 + size % PieceCache::kMostIds, static_cast<std::int32_t>(size));
    cache.store(PieceKey(piece), ids);
    const auto found = cache.find(PieceKey(piece));
    EXPECT_EQ(Ids(found.begin(), found.end()), ids);
    for (std::size_t at = 0; at < size; ++at) {
      std::string other = piece;
      other[at] = static_cast<char>(other[at] ^ 1);
      EXPECT_TRUE(cache.find(PieceKey(other)).empty()) << size << " bytes, another at " << at;
    }
    if (size == 1) continue;
    EXPECT_TRUE(cache.find(PieceKey(piece.substr(1))).empty());
    EXPECT_TRUE(cache.find(PieceKey(piece.substr(0, size - 1))).empty());
  }
}

TEST(PieceCache, ForgetsButNeverConfuses) {
  PieceCache cache;
  const auto piece_of = [](std::int32_t i) { return "piece " + std::to_string(i); };
  constexpr std::int32_t kPieces = 200'000;
  for (std::int32_t i = 0; i < kPieces; ++i) cache.store(PieceKey(piece_of(i)), Ids{i, -i});
  int known = 0;
  for (std::int32_t i = 0; i < kPieces; ++i) {
    const auto found = cache.find(PieceKey(piece_of(i)));
    if (found.empty()) continue;
    ++known;
    ASSERT_EQ(Ids(found.begin(), found.end()), (Ids{i, -i}));
  }
  EXPECT_GT(known, 20'000);
  cache.store(PieceKey("x"), Ids(PieceCache::kMostIds + 1, 0));
  EXPECT_TRUE(cache.find(PieceKey("x")).empty()) << "too many tokens";
}

TEST(JoinedCharacters, HoldsWhatWasAddedAndLittleElse) {
  JoinedCharacters joined(1000);
  base::Random random(37, 0);
  const auto character = [&] { return static_cast<char32_t>(random.next_below(0x110000)); };
  std::vector<std::pair<char32_t, char32_t>> pairs = {{0, 0}, {0x10FFFF, 0x10FFFF}, {U'a', 0x2581}};
  while (pairs.size() < 1000) pairs.emplace_back(character(), character());
  for (const auto& [left, right] : pairs) joined.add(left, right);
  for (const auto& [left, right] : pairs) EXPECT_TRUE(joined.contains(left, right));
  int others = 0;
  for (int i = 0; i < 1000; ++i) others += joined.contains(character(), character()) ? 1 : 0;
  EXPECT_LT(others, 50);
  EXPECT_FALSE(joined.contains(U'a', U'b'));
}

}  // namespace
}  // namespace retort::text
