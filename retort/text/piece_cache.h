#pragma once
// Remembers the tokens of short pieces: most of a text is words that came before.

#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

namespace retort::text {

/// The bytes of a piece of 1 to 32 bytes in four words: the same for the same bytes, if the sizes are the
/// same.
struct PieceKey {
  static constexpr std::size_t kLongest = 32;

  explicit PieceKey(std::string_view piece);
  bool equals(const std::array<std::uint64_t, 4>& other, std::uint8_t other_size) const {
    const std::uint64_t differ = (words[0] ^ other[0]) | (words[1] ^ other[1]) | (words[2] ^ other[2]) |
                                 (words[3] ^ other[3]) | static_cast<std::uint64_t>(size ^ other_size);
    return differ == 0;
  }
  std::uint64_t hash() const;

  std::array<std::uint64_t, 4> words{};
  std::uint8_t size;
};

/// A hash table in which a piece has one place, and a later piece replaces an earlier one.  It grows with
/// use, to 4 MiB.  For one thread and one model.
class PieceCache {
 public:
  static constexpr std::size_t kMostIds = 7;

  /// The tokens of a piece; none if they are not known.  Valid until the next store().
  std::span<const std::int32_t> find(const PieceKey& key) const {
    const Slot& slot = slots_[key.hash() >> shift_];
    if (!key.equals(slot.words, slot.size)) return {};
    return {slot.ids.data(), slot.count};
  }
  /// Too many tokens are not kept.
  void store(const PieceKey& key, std::span<const std::int32_t> ids);

 private:
  // One cache line.
  struct alignas(64) Slot {
    std::array<std::uint64_t, 4> words{};
    std::uint8_t size = 0;  // 0: empty
    std::uint8_t count = 0;
    std::array<std::int32_t, kMostIds> ids{};
  };
  static constexpr int kFirstBits = 8, kLastBits = 16;

  void grow();

  std::vector<Slot> slots_ = std::vector<Slot>(std::size_t{1} << kFirstBits);
  int shift_ = 64 - kFirstBits;
  std::size_t stored_ = 0;  // since it grew
};

// Overlapping reads of fixed sizes take the place of a loop over bytes.
inline PieceKey::PieceKey(std::string_view piece) : size(static_cast<std::uint8_t>(piece.size())) {
  const char* const begin = piece.data();
  const char* const end = begin + piece.size();
  const auto word = [](const char* at) {
    std::uint64_t value;
    std::memcpy(&value, at, sizeof value);
    return value;
  };
  const auto half = [](const char* at) {
    std::uint32_t value;
    std::memcpy(&value, at, sizeof value);
    return std::uint64_t{value};
  };
  const auto byte = [](const char* at) { return std::uint64_t{static_cast<unsigned char>(*at)}; };
  if (piece.size() > 16)
    words = {word(begin), word(begin + 8), word(end - 16), word(end - 8)};
  else if (piece.size() >= 8)
    words = {word(begin), word(end - 8)};
  else if (piece.size() >= 4)
    words = {half(begin) << 32 | half(end - 4)};
  else
    words = {byte(begin) << 16 | byte(begin + piece.size() / 2) << 8 | byte(end - 1)};
}

inline std::uint64_t PieceKey::hash() const {
  const auto mixed = [](std::uint64_t value, std::uint64_t factor) {
    value *= factor;
    return value ^ value >> 32;
  };
  std::uint64_t sum = mixed(words[0] + size, 0x9E3779B97F4A7C15ULL) + mixed(words[1], 0xD6E8FEB86659FD93ULL);
  if (size > 16) sum += mixed(words[2], 0xA0761D6478BD642FULL) + mixed(words[3], 0xE7037ED1A0B428DBULL);
  return sum * 0x9E3779B97F4A7C15ULL;
}

}  // namespace retort::text
