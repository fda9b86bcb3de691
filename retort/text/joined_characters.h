#pragma once
// Between two characters that no merge joins, a text can be cut: the parts have the same tokens on their own.

#include <cstdint>
#include <vector>

namespace retort::text {

/// A set of pairs of neighbouring characters.  It may hold pairs that were not added, but few of them.
class JoinedCharacters {
 public:
  /// `expected`: about how many pairs will be added.
  explicit JoinedCharacters(std::size_t expected = 0);
  void add(char32_t left, char32_t right);
  bool contains(char32_t left, char32_t right) const {
    const std::size_t bit = bit_of(left, right);
    return (words_[bit / 64] >> bit % 64 & 1) != 0;
  }

 private:
  // Pairs of the same two stretches of 128 characters lie together, so that a text needs little of the table.
  static constexpr int kStretchBits = 7;
  std::size_t bit_of(char32_t left, char32_t right) const {
    constexpr std::uint32_t kInside = (1U << kStretchBits) - 1;
    const std::uint32_t stretches =
        ((left >> kStretchBits) * 0x9E3779B1U + (right >> kStretchBits) * 0x85EBCA77U) >> shift_;
    return std::size_t{stretches} << 2 * kStretchBits | (left & kInside) << kStretchBits | (right & kInside);
  }

  int shift_;
  std::vector<std::uint64_t> words_;
};

}  // namespace retort::text
