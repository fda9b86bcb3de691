#pragma once
// Byte-pair encoding: a piece starts as characters (or bytes of the byte-level alphabet); again and again the
// neighbours of lowest merge rank, leftmost first, become one token.

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

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

/// Pair of tokens -> (rank, token): a hash table with open addressing.
class MergeTable {
 public:
  static constexpr std::uint32_t kNoRank = 0xFFFFFFFF;
  struct Merge {
    std::uint32_t rank = kNoRank;
    std::int32_t token = -1;
  };

  explicit MergeTable(std::size_t expected);
  /// A later entry for the same pair replaces an earlier one.
  void set(std::int32_t left, std::int32_t right, Merge merge);
  Merge find(std::int32_t left, std::int32_t right) const;

 private:
  struct Slot {
    std::uint64_t key;
    Merge merge;
  };
  static std::uint64_t key_of(std::int32_t left, std::int32_t right);
  std::size_t slot_of(std::uint64_t key) const;

  std::vector<Slot> slots_;
  int shift_ = 0;
};

/// Working memory of one thread, kept between pieces.
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
};

}  // namespace retort::text
