#pragma once
// Held-out documents that are looked for in other text, however that is cut.

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace retort::data {

/// A document is found when its whole text is a document of the other text, or when that has half of its runs
/// (text_runs.h).  Runs that several held-out documents share, or that more than kCommonDocuments of the
/// other documents have, are boilerplate and do not count; fewer than kLeastRuns say nothing.  Memory is
/// bounded: of more text than `most_runs` hold, a smaller sample of the runs is kept.
class HeldOutTexts {
 public:
  static constexpr std::uint32_t kCommonDocuments = 3;
  static constexpr std::uint32_t kLeastRuns = 8;

  explicit HeldOutTexts(std::size_t most_runs) : most_runs_(most_runs) {}

  /// Adds a document; a text that is known already is passed over, an empty one too.
  void add(std::string_view text);
  /// Begins another text to look in.
  void restart();
  /// Looks at the next document of the other text; `runs` are its text_runs() up to limit() or more.
  void look_in(std::string_view text, const std::vector<std::uint64_t>& runs);
  std::uint64_t limit() const { return limit_; }
  /// Documents found in the other text so far.
  std::int64_t found() const;

 private:
  struct Run {
    std::uint32_t document = 0;
    std::uint32_t times = 0;  // other documents with it
    bool shared = false;      // with another held-out document
  };

  void thin_out();

  std::size_t most_runs_;
  std::uint64_t limit_ = std::uint64_t{1} << 62;                // a quarter of all runs
  std::unordered_map<std::uint64_t, std::uint32_t> documents_;  // by a hash of the whole text
  std::vector<char> seen_whole_;
  std::unordered_map<std::uint64_t, Run> runs_;
};

}  // namespace retort::data
