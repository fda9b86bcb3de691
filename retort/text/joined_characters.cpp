#include "retort/text/joined_characters.h"

#include <algorithm>
#include <bit>

namespace retort::text {
namespace {

constexpr std::size_t kBitsOfPair = 64;  // so few pairs are found that were not added
constexpr std::size_t kFewest = std::size_t{1} << 18, kMost = std::size_t{1} << 24;

}  // namespace

JoinedCharacters::JoinedCharacters(std::size_t expected) {
  const std::size_t bits = std::bit_ceil(std::clamp(expected * kBitsOfPair, kFewest, kMost));
  shift_ = 32 - (std::countr_zero(bits) - 2 * kStretchBits);
  words_.assign(bits / 64, 0);
}

void JoinedCharacters::add(char32_t left, char32_t right) {
  const std::size_t bit = bit_of(left, right);
  words_[bit / 64] |= std::uint64_t{1} << bit % 64;
}

}  // namespace retort::text
