#pragma once
// Regular expressions as the module re of Python has them: the same matches, by backtracking with bounded
// work.  Conditional groups, flags within a pattern's middle and look-behind of unequal lengths are refused.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace retort::chat {

/// Why a pattern cannot be read or takes too long.
struct RegexFault {
  std::string reason;
};

/// Immutable and cheap to copy; all functions may be called from several threads at once.
class PythonRegex {
 public:
  /// First byte and the byte behind of each group, the whole match first; absent where a group has no part.
  using Match = std::vector<std::optional<std::pair<std::size_t, std::size_t>>>;

  /// Throws RegexFault.
  static PythonRegex parse(std::string_view pattern);

  const std::string& pattern() const;
  std::size_t num_groups() const;  ///< without the whole match

  /// All matches that do not overlap, from left to right, as re.finditer gives them.  `text` is valid UTF-8.
  /// Throws RegexFault above `most_steps` steps.
  std::vector<Match> find_all(std::string_view text, std::int64_t most_steps = 10'000'000) const;

  /// As re.sub: `replacement` may name groups as \1 and \g<1>; 0 as `count` replaces all.  Throws RegexFault,
  /// also for a replacement that Python refuses.
  std::string replaced(std::string_view text, std::string_view replacement, std::int64_t count = 0) const;

 private:
  struct Program;
  explicit PythonRegex(std::shared_ptr<const Program> program) : program_(std::move(program)) {}

  std::shared_ptr<const Program> program_;
};

}  // namespace retort::chat
