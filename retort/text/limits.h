#pragma once
// Limits against tokenizers of a few kilobytes that would take all memory; far above any tokenizer in use.

#include <algorithm>
#include <cstddef>
#include <string>

#include "retort/base/error.h"

namespace retort::text {

inline constexpr std::size_t kMaxTextBytes = std::size_t{1} << 31;
/// Of a normalizer, a pre-tokenizer or a decoder: each step reads the whole text.
inline constexpr std::size_t kMaxSteps = 64;
/// Of a text that a step looks for at each place.
inline constexpr std::size_t kMaxLiteralBytes = 1024;
/// Of the tokens around a sequence, and of the pieces of the templates that name them.
inline constexpr std::size_t kMaxAround = 256;

/// How long the steps of a tokenizer may make a text: 40 steps that double it would make a letter a terabyte.
class GrowthLimit {
 public:
  /// `bytes`: of the text before the first step.
  explicit GrowthLimit(std::size_t bytes)
      : bytes_(bytes), most_bytes_(std::min(kMaxTextBytes, kMaxGrowth * bytes + kMaxMoreBytes)) {}

  std::size_t most_bytes() const { return most_bytes_; }
  /// Throws ModelError where a text of `bytes` is too long; `who` made it.
  void check(std::size_t bytes, const std::string& who) const {
    base::require<base::ModelError>(bytes <= most_bytes_, who, ": makes more than ", most_bytes_,
                                    " bytes of a text of ", bytes_,
                                    "; use another tokenizer, or cut the text into documents.");
  }

 private:
  // A space becomes U+2581 and a tab eight of them, so 24 bytes of one.
  static constexpr std::size_t kMaxGrowth = 32, kMaxMoreBytes = 256;

  std::size_t bytes_, most_bytes_;
};

}  // namespace retort::text
