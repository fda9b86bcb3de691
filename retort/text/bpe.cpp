#include "retort/text/bpe.h"

#include <algorithm>
#include <bit>

#include "retort/text/byte_level.h"
#include "retort/text/unicode.h"

namespace retort::text {
namespace {

constexpr std::uint64_t kEmptyKey = ~std::uint64_t{0};
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

MergeTable::MergeTable(std::size_t expected) {
  const std::size_t size = std::bit_ceil(std::max<std::size_t>(expected * 2, 16));
  shift_ = 64 - std::countr_zero(size);
  slots_.assign(size, Slot{kEmptyKey, {}});
}

std::uint64_t MergeTable::key_of(std::int32_t left, std::int32_t right) {
  return std::uint64_t{static_cast<std::uint32_t>(left)} << 32 | static_cast<std::uint32_t>(right);
}

std::size_t MergeTable::slot_of(std::uint64_t key) const {
  std::uint64_t mixed = key ^ key >> 29;
  mixed *= 0x9E3779B97F4A7C15ULL;
  std::size_t slot = (mixed ^ mixed >> 32) * 0xD6E8FEB86659FD93ULL >> shift_;
  while (slots_[slot].key != key && slots_[slot].key != kEmptyKey) slot = (slot + 1) & (slots_.size() - 1);
  return slot;
}

void MergeTable::set(std::int32_t left, std::int32_t right, Merge merge) {
  const std::uint64_t key = key_of(left, right);
  slots_[slot_of(key)] = {key, merge};
}

MergeTable::Merge MergeTable::find(std::int32_t left, std::int32_t right) const {
  return slots_[slot_of(key_of(left, right))].merge;
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
  if (options_.ignore_merges) {
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
