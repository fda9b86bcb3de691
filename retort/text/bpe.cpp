#include "retort/text/bpe.h"

#include <algorithm>
#include <unordered_set>

#include "retort/text/byte_level.h"
#include "retort/text/unicode.h"

namespace retort::text {
namespace {

constexpr std::uint32_t kNone = 0xFFFFFFFF;
// Up to this many symbols a plain search for the lowest rank beats a heap.
constexpr std::size_t kShort = 40;

std::string fallback_name(int byte) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  return std::string("<0x") + kDigits[byte / 16] + kDigits[byte % 16] + ">";
}

std::int32_t find_or(const Vocabulary& vocabulary, std::string_view token, std::int32_t otherwise) {
  const auto found = vocabulary.find(token);
  return found == vocabulary.end() ? otherwise : found->second;
}

}  // namespace

void BpeScratch::shrink() {
  constexpr std::size_t kKept = 1024;  // symbols
  if (ids.capacity() > kKept) ids = {};
  if (symbols.capacity() > kKept) symbols = {};
  if (heap.capacity() > kKept) heap = {};
}

Bpe::Bpe(const Vocabulary& vocabulary, MergeTable merges, const BpeOptions& options)
    : merges_(std::move(merges)),
      options_(options),
      pages_(0x110000 / kPage, 0),
      character_ids_(kPage, kMissing) {
  for (const auto& [token, id] : vocabulary) {
    if (!token.empty() && read_character(token.data()).size == token.size())
      add_character(read_character(token.data()).code, id);
    if (!options_.ignore_merges) continue;
    if (!options_.byte_level)
      whole_.emplace(token, id);
    else if (auto bytes = token_bytes(token))
      whole_.emplace(std::move(*bytes), id);
  }
  for (int byte = 0; byte < 256; ++byte) {
    const auto index = static_cast<std::size_t>(byte);
    byte_ids_[index] = character_id(byte_character(static_cast<std::uint8_t>(byte)));
    fallback_ids_[index] = find_or(vocabulary, fallback_name(byte), kMissing);
  }
  all_have_symbols_ = options_.byte_fallback && std::ranges::count(fallback_ids_, kMissing) == 0;
  if (!options_.byte_level) find_joined_characters(vocabulary);
}

// A merge joins the last character of its left token and the first of its right one.  Where tokens merge that
// stand for characters outside the vocabulary, that is not so, and no piece is cut; no known model has these.
void Bpe::find_joined_characters(const Vocabulary& vocabulary) {
  std::unordered_map<std::int32_t, std::string_view> texts;
  for (const auto& [token, id] : vocabulary) texts.emplace(id, token);
  std::unordered_set<std::int32_t> stand_ins(fallback_ids_.begin(), fallback_ids_.end());
  if (options_.unk) stand_ins.insert(*options_.unk);
  JoinedCharacters joined(merges_.size() / 8);
  bool stand_ins_merge = false;
  merges_.for_each_pair([&](std::int32_t left, std::int32_t right) {
    stand_ins_merge = stand_ins_merge || stand_ins.contains(left) || stand_ins.contains(right);
    const std::string_view before = texts.at(left), after = texts.at(right);
    if (before.empty() || after.empty()) return;  // no symbol is empty
    joined.add(read_character(previous_character(before.data() + before.size())).code,
               read_character(after.data()).code);
  });
  if (!stand_ins_merge) joined_ = std::move(joined);
}

void Bpe::add_character(char32_t code, std::int32_t id) {
  std::uint16_t& page = pages_[code / kPage];
  if (page == 0) {
    page = static_cast<std::uint16_t>(character_ids_.size() / kPage);
    character_ids_.resize(character_ids_.size() + kPage, kMissing);
  }
  character_ids_[page * kPage + code % kPage] = id;
}

std::int32_t Bpe::character_id(char32_t code) const {
  return character_ids_[pages_[code / kPage] * kPage + code % kPage];
}

// The byte tokens of a character, if the vocabulary has all of them.
bool Bpe::start_fallback(char32_t code, std::vector<std::int32_t>& ids) const {
  std::string bytes;
  append_utf8(bytes, code);
  const auto id_of = [this](char byte) { return fallback_ids_[static_cast<unsigned char>(byte)]; };
  if (std::any_of(bytes.begin(), bytes.end(), [&](char byte) { return id_of(byte) == kMissing; }))
    return false;
  for (const char byte : bytes) ids.push_back(id_of(byte));
  return true;
}

// An unknown token waits until the next known character, so that neighbours can fuse; byte tokens in between
// go before it.  That order is HF's, and it is kept.
void Bpe::start_symbols(std::string_view piece, std::vector<std::int32_t>& ids) const {
  ids.clear();
  bool unknown = false;
  const char* const end = piece.data() + piece.size();
  for (const char* at = piece.data(); at != end;) {
    const bool byte = options_.byte_level;
    const auto lead = static_cast<unsigned char>(*at);
    const Character character = byte ? Character{byte_character(lead), 1} : read_character(at);
    const std::int32_t id = byte ? byte_ids_[lead] : character_id(character.code);
    at += character.size;
    if (id == kMissing && options_.byte_fallback && start_fallback(character.code, ids)) continue;
    if (unknown && (id != kMissing || !options_.fuse_unk)) {
      ids.push_back(*options_.unk);
      unknown = false;
    }
    if (id != kMissing)
      ids.push_back(id);
    else
      unknown =
          options_.unk.has_value();  // without an unknown token the character is lost, as in HF tokenizers
  }
  if (unknown) ids.push_back(*options_.unk);
}

void Bpe::encode(std::string_view piece, BpeScratch& scratch, std::vector<std::int32_t>& out) const {
  if (piece.empty()) return;
  if (options_.byte_level) return encode_cached(piece, scratch, out);
  if (options_.ignore_merges) {
    const std::int32_t id = find_or(whole_, piece, kMissing);
    if (id != kMissing) return out.push_back(id);
  }
  if (!joined_) return merge(piece, scratch, out);
  encode_parts(piece, scratch, out);
}

// Cuts between neighbours that no merge joins, which gives about words, and encodes each part alone.
void Bpe::encode_parts(std::string_view piece, BpeScratch& scratch, std::vector<std::int32_t>& out) const {
  const char* const end = piece.data() + piece.size();
  const char* start = piece.data();
  Character left = read_character(start);
  const auto give = [&](const char* stop) {
    const bool single = stop == start + left.size;
    const std::int32_t id = single ? character_id(left.code) : kMissing;
    if (id != kMissing) return out.push_back(id);
    encode_cached({start, static_cast<std::size_t>(stop - start)}, scratch, out);
  };
  for (const char* at = start + left.size; at != end;) {
    const Character right = read_character(at);
    if (!joined_->contains(left.code, right.code) && !stay_together(left.code, right.code)) {
      give(at);
      start = at;
    }
    left = right;
    at += right.size;
  }
  give(end);
}

// Neighbours outside the vocabulary can fuse, or wait for byte tokens.  Without an unknown token a character
// is lost, so that those beside it become neighbours.
bool Bpe::stay_together(char32_t left, char32_t right) const {
  if (all_have_symbols_) return false;
  const bool left_missing = character_id(left) == kMissing, right_missing = character_id(right) == kMissing;
  return options_.unk ? left_missing && right_missing : left_missing || right_missing;
}

void Bpe::encode_cached(std::string_view piece, BpeScratch& scratch, std::vector<std::int32_t>& out) const {
  if (piece.size() > PieceKey::kLongest) return merge(piece, scratch, out);
  const PieceKey key(piece);
  if (const auto known = scratch.cache.find(key); !known.empty()) {
    out.insert(out.end(), known.begin(), known.end());
    return;
  }
  const std::size_t before = out.size();
  merge(piece, scratch, out);
  scratch.cache.store(key, std::span(out).subspan(before));
}

void Bpe::merge(std::string_view piece, BpeScratch& scratch, std::vector<std::int32_t>& out) const {
  if (options_.byte_level && options_.ignore_merges) {
    const std::int32_t id = find_or(whole_, piece, kMissing);
    if (id != kMissing) return out.push_back(id);
  }
  start_symbols(piece, scratch.ids);
  if (scratch.ids.size() <= kShort) return merge_short(scratch, out);
  merge_long(scratch, out);
}

void Bpe::merge_short(BpeScratch& scratch, std::vector<std::int32_t>& out) const {
  auto& ids = scratch.ids;
  auto& merges = scratch.merges;
  merges.clear();
  for (std::size_t i = 0; i + 1 < ids.size(); ++i) merges.push_back(merges_.find(ids[i], ids[i + 1]));
  while (!merges.empty()) {
    const auto best = std::min_element(merges.begin(), merges.end(),
                                       [](const auto& a, const auto& b) { return a.rank < b.rank; });
    if (best->rank == MergeTable::kNoRank) break;
    const auto at = best - merges.begin();
    const auto index = static_cast<std::size_t>(at);
    ids[index] = best->token;
    ids.erase(ids.begin() + at + 1);
    merges.erase(best);
    if (index > 0) merges[index - 1] = merges_.find(ids[index - 1], ids[index]);
    if (index < merges.size()) merges[index] = merges_.find(ids[index], ids[index + 1]);
  }
  out.insert(out.end(), ids.begin(), ids.end());
}

void Bpe::link_symbols(BpeScratch& scratch) const {
  const auto count = static_cast<std::uint32_t>(scratch.ids.size());
  scratch.symbols.clear();
  scratch.heap.clear();
  for (std::uint32_t i = 0; i < count; ++i) {
    const bool last = i + 1 == count;
    const auto merge = last ? MergeTable::Merge{} : merges_.find(scratch.ids[i], scratch.ids[i + 1]);
    scratch.symbols.push_back({scratch.ids[i], i == 0 ? kNone : i - 1, last ? kNone : i + 1, merge});
    if (merge.rank != MergeTable::kNoRank) scratch.heap.push_back(std::uint64_t{merge.rank} << 32 | i);
  }
  std::make_heap(scratch.heap.begin(), scratch.heap.end(), std::greater<>());
}

// Looks the merge of a symbol with its new neighbour up and queues it.
void Bpe::renew_merge(BpeScratch& scratch, std::uint32_t position) const {
  auto& symbol = scratch.symbols[position];
  symbol.merge =
      symbol.next == kNone ? MergeTable::Merge{} : merges_.find(symbol.id, scratch.symbols[symbol.next].id);
  if (symbol.merge.rank == MergeTable::kNoRank) return;
  scratch.heap.push_back(std::uint64_t{symbol.merge.rank} << 32 | position);
  std::push_heap(scratch.heap.begin(), scratch.heap.end(), std::greater<>());
}

// The heap holds (rank, position); an entry that no longer fits its symbol is stale and dropped when it comes
// up.
void Bpe::merge_long(BpeScratch& scratch, std::vector<std::int32_t>& out) const {
  link_symbols(scratch);
  auto& symbols = scratch.symbols;
  auto& heap = scratch.heap;
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), std::greater<>());
    const auto rank = static_cast<std::uint32_t>(heap.back() >> 32);
    const auto position = static_cast<std::uint32_t>(heap.back());
    heap.pop_back();
    auto& symbol = symbols[position];
    if (symbol.merge.rank != rank) continue;
    auto& right = symbols[symbol.next];
    symbol.id = symbol.merge.token;
    symbol.next = right.next;
    right.merge = {};
    if (right.next != kNone) symbols[right.next].previous = position;
    renew_merge(scratch, position);
    if (symbol.previous != kNone) renew_merge(scratch, symbol.previous);
  }
  for (std::uint32_t i = 0; i != kNone; i = symbols[i].next) out.push_back(symbols[i].id);
}

}  // namespace retort::text
