#pragma once
// What bounds the work of a template: it comes from a stranger, and so may what it is given.

#include <cstddef>
#include <cstdint>
#include <string>

namespace retort::chat {

inline constexpr std::size_t kLargestTemplate = std::size_t{1} << 20;   ///< bytes
inline constexpr std::size_t kLargestRendered = std::size_t{64} << 20;  ///< bytes
inline constexpr std::int64_t kMostSteps = 20'000'000;
/// Bytes of all texts and lists that are made on the way, most of which are soon dropped.
inline constexpr std::int64_t kMostMadeBytes = std::int64_t{512} << 20;
inline constexpr int kDeepestSyntax = 200;              ///< of an expression or of statements in statements
inline constexpr int kDeepestCalls = 1000;              ///< expressions, statements and macros under way
inline constexpr int kDeepestValue = 200;               ///< lists in lists
inline constexpr std::int64_t kLongestRange = 100'000;  ///< as in Jinja's sandbox

/// Why a template cannot be read or rendered; callers turn it into an error with the template's name.
struct TemplateFault {
  std::string reason;
  int line = 0;  ///< from 1; 0: not known
};

/// Counts the work of one rendering; throws TemplateFault at its end.
class Budget {
 public:
  void step(std::int64_t count = 1) {
    steps_ += count;
    if (steps_ > kMostSteps) [[unlikely]]
      throw TemplateFault{"it takes more than 20 million steps"};
  }
  /// To be called before the memory is taken.
  void make(std::size_t bytes) {
    made_bytes_ += static_cast<std::int64_t>(bytes < kMostMade ? bytes : kMostMade);
    if (made_bytes_ > kMostMadeBytes) [[unlikely]]
      throw TemplateFault{"it makes more than 512 MiB of texts and lists"};
  }

 private:
  static constexpr std::size_t kMostMade = std::size_t{1} << 40;
  std::int64_t steps_ = 0;
  std::int64_t made_bytes_ = 0;
};

}  // namespace retort::chat
