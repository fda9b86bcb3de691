#pragma once
// A file of texts that a model writes, a JSON object a line, which is gone on with where it ended.  Beside it
// FILE.about.json says by what the texts are made, how far they are, and what was dropped:
// docs/formats/corpus.md.

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>

#include "retort/base/files.h"
#include "retort/base/hash.h"
#include "retort/base/json.h"
#include "retort/base/line_file.h"
#include "retort/base/words.h"

namespace retort::pipeline {

/// What becomes of a text.
enum class Fate {
  kept,
  unended,     ///< it came to its limit of tokens
  empty,       ///< it has no text
  repetitive,  ///< it fell into a loop
  broken,      ///< it has bytes that are no text
  too_long,    ///< its question leaves no room for an answer
  duplicate    ///< one before it is the same, or asks the same
};
constexpr auto words_of(Fate) {
  return base::words<Fate::duplicate>("kept", "without an end", "empty", "repetitive", "broken", "too long",
                                      "duplicates");
}
inline constexpr std::size_t kFates = words_of(Fate()).size();

/// What a model made of the numbers drawn for `number`.
struct CorpusRow {
  std::int64_t number = 0;
  Fate fate = Fate::kept;
  std::int64_t tokens = 0;
  base::Json line = {};  ///< {"text"}, or {"messages", "text"}; of one that is kept
};

struct CorpusCounts {
  std::int64_t rows = 0;                     ///< judged so far
  std::int64_t tokens = 0;                   ///< of the texts that are kept
  std::int64_t bytes = 0;                    ///< of the file
  std::int64_t since_kept = 0;               ///< rows dropped since the last that was kept
  std::array<std::int64_t, kFates> of = {};  ///< rows by fate

  std::int64_t kept() const { return of[0]; }
  std::int64_t dropped() const { return rows - of[0]; }
};

class CorpusFile {
 public:
  /// So many rows in a row are dropped before the model is given up.
  static constexpr std::int64_t kMostDropped = 256;
  static base::Path about(const base::Path& path);
  /// What is said beside the file, null where there is nothing sound.
  static base::Json read_about(const base::Path& path);

  /// Whether what is said beside a file lets it become one of these settings and this budget.
  static bool fits(const base::Json& about, const base::Json& settings, std::int64_t budget_tokens);

  /// Goes on behind what the file has of the same `settings`; takes back what an end by force left half
  /// written.  `date`: of today, as the first start noted it.  `by_question`: conversations that ask the same
  /// are duplicates; `budget_tokens` 0: as many as there are.  A greater budget than before goes on.  Throws
  /// UsageError where the file is not one of the same settings or has more than the budget, StorageError
  /// also where another process writes it, and DataError where it has changed since it was written.
  CorpusFile(base::Path path, base::Json settings, std::string date, std::int64_t budget_tokens,
             bool by_question);

  const CorpusCounts& counts() const { return counts_; }
  const std::string& date() const { return date_; }
  bool finished() const { return exhausted_ || is_full(); }
  /// Takes rows in any order and judges them by their numbers; what comes behind the budget is passed over.
  /// Throws StorageError, and ValidationError behind kMostDropped.
  void add(CorpusRow row);
  /// Makes all durable.
  void save();
  /// No row comes any more, whatever the budget.
  void exhaust();

 private:
  bool is_full() const { return budget_tokens_ > 0 && counts_.tokens >= budget_tokens_; }
  void resume(const base::Json& about);
  void judge(CorpusRow row);
  void note_key(const base::Json& line);
  std::string key_of(const base::Json& line) const;

  base::Path path_;
  base::Json settings_;
  std::string date_;
  std::int64_t budget_tokens_;
  bool by_question_;
  std::shared_ptr<const int> lock_;  ///< of the file, as long as this object lives
  CorpusCounts counts_;
  bool exhausted_ = false;
  double saved_at_ = 0;  ///< monotonic seconds
  std::unordered_set<std::uint64_t> keys_;
  std::map<std::int64_t, CorpusRow> waiting_;
  base::Hasher hash_;
  std::optional<base::LineFile> file_;
};

base::Json to_json(const CorpusCounts& counts);
/// "1,204 without an end, 3 duplicates"
std::string describe_dropped(const CorpusCounts& counts);

}  // namespace retort::pipeline
