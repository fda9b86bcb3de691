#pragma once
// Byte-pair encoding: a piece starts as characters (or bytes of the byte-level alphabet); again and again the
// neighbours of lowest merge rank, leftmost first, become one token.  Pieces are cut where no merge reaches
// across, and the tokens of short parts are remembered.

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "retort/text/joined_characters.h"
#include "retort/text/merge_table.h"
#include "retort/text/piece_cache.h"

namespace retort::text {

struct StringHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};

using Vocabulary = std::unordered_map<std::string, std::int32_t, StringHash, std::equal_to<>>;

struct BpeOptions {
  bool byte_level = false;  ///< pieces are bytes, each standing for its character of the byte-level alphabet
  bool byte_fallback = false;  ///< a character that is no token becomes the tokens <0xNN> of its bytes
  bool fuse_unk = false;       ///< neighbouring unknown characters become one unknown token
  bool ignore_merges = false;  ///< a piece that is a token is taken whole
  std::optional<std::int32_t> unk;
};

/// Working memory of one thread for one model, kept between pieces and texts.
struct BpeScratch {
  struct Symbol {
    std::int32_t id;
    std::uint32_t previous, next;  ///< positions; ends are kNone
    MergeTable::Merge merge;       ///< with `next`
  };
  std::vector<std::int32_t> ids;
  std::vector<MergeTable::Merge> merges;
  std::vector<Symbol> symbols;
  std::vector<std::uint64_t> heap;
  PieceCache cache;

  /// Frees what a long piece has needed.
  void shrink();
};

class Bpe {
 public:
  Bpe(const Vocabulary& vocabulary, MergeTable merges, const BpeOptions& options);

  /// Appends the tokens of `piece` (valid UTF-8, or any bytes at byte level).  Time is n log n for n
  /// characters.
  void encode(std::string_view piece, BpeScratch& scratch, std::vector<std::int32_t>& out) const;

 private:
  static constexpr std::int32_t kMissing = -1;
  static constexpr std::size_t kPage = 256;

  void add_character(char32_t code, std::int32_t id);
  void find_joined_characters(const Vocabulary& vocabulary);
  void encode_parts(std::string_view piece, BpeScratch& scratch, std::vector<std::int32_t>& out) const;
  bool stay_together(char32_t left, char32_t right) const;
  void encode_cached(std::string_view piece, BpeScratch& scratch, std::vector<std::int32_t>& out) const;
  void merge(std::string_view piece, BpeScratch& scratch, std::vector<std::int32_t>& out) const;
  std::int32_t character_id(char32_t code) const;
  void start_symbols(std::string_view piece, std::vector<std::int32_t>& ids) const;
  bool start_fallback(char32_t code, std::vector<std::int32_t>& ids) const;
  void merge_short(BpeScratch& scratch, std::vector<std::int32_t>& out) const;
  void merge_long(BpeScratch& scratch, std::vector<std::int32_t>& out) const;
  void link_symbols(BpeScratch& scratch) const;
  void renew_merge(BpeScratch& scratch, std::uint32_t position) const;

  MergeTable merges_;
  BpeOptions options_;
  Vocabulary whole_;                            // tokens by the text of a piece; filled for ignore_merges
  std::vector<std::uint16_t> pages_;            // character / kPage -> page of character_ids_
  std::vector<std::int32_t> character_ids_;     // page 0 is all missing
  std::array<std::int32_t, 256> byte_ids_;      // byte level: the token of a byte
  std::array<std::int32_t, 256> fallback_ids_;  // <0xNN>
  std::optional<JoinedCharacters> joined_;      // nothing: pieces are not cut
  bool all_have_symbols_ = false;               // every character outside the vocabulary has byte tokens
};

}  // namespace retort::text
