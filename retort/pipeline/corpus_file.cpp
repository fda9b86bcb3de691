#include "retort/pipeline/corpus_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <system_error>
#include <utility>

#include "retort/base/error.h"
#include "retort/base/file_system.h"
#include "retort/base/json_file.h"
#include "retort/base/machine.h"
#include "retort/record/checked_json.h"
#include "retort/record/keys.h"

namespace retort::pipeline {
namespace {

namespace keys = record::keys;

constexpr double kSecondsBetweenSaves = 2;
constexpr const char* kAdvice = "; name another file, or remove this one.";

std::int64_t count_in(const base::Json& about, std::string_view key) {
  return about.value(std::string(key), std::int64_t{0});
}

CorpusCounts counts_of(const base::Json& about) {
  CorpusCounts counts{.rows = count_in(about, keys::kRows),
                      .tokens = count_in(about, keys::kTokens),
                      .bytes = count_in(about, keys::kBytes),
                      .since_kept = count_in(about, keys::kSinceKept)};
  const auto dropped = about.value(keys::kDropped, base::Json::object());
  for (std::size_t fate = 1; fate < kFates; ++fate)
    counts.of[fate] = count_in(dropped, words_of(Fate())[fate]);
  counts.of[0] = count_in(about, keys::kTexts);
  return counts;
}

// Of one process at a time, where the file system has locks.
std::shared_ptr<const int> locked(const base::Path& path) {
  const int descriptor = base::file_system().open(path, O_RDWR | O_CREAT | O_CLOEXEC);
  base::require<base::StorageError>(descriptor >= 0, path.string(), ": cannot be written (",
                                    std::strerror(errno), ").");
  std::shared_ptr<const int> lock(new int(descriptor), [](const int* held) {
    ::close(*held);
    delete held;
  });
  base::require<base::StorageError>(base::file_system().lock(descriptor) == 0 || errno != EWOULDBLOCK,
                                    path.string(), ": another process writes it; wait for its end.");
  return lock;
}

bool holds(const base::Path& path) {
  std::error_code ignored;
  return std::filesystem::exists(std::filesystem::symlink_status(path, ignored));
}

}  // namespace

base::Json to_json(const CorpusCounts& counts) {
  base::Json dropped = base::Json::object();
  for (std::size_t fate = 1; fate < kFates; ++fate)
    if (counts.of[fate] > 0) dropped[std::string(words_of(Fate())[fate])] = counts.of[fate];
  return {{keys::kTexts, counts.kept()},
          {keys::kTokens, counts.tokens},
          {keys::kRows, counts.rows},
          {keys::kDropped, dropped}};
}

std::string describe_dropped(const CorpusCounts& counts) {
  std::string all;
  for (std::size_t fate = 1; fate < kFates; ++fate)
    if (counts.of[fate] > 0)
      all += base::join(all.empty() ? "" : ", ", counts.of[fate], " ", words_of(Fate())[fate]);
  return all;
}

base::Path CorpusFile::about(const base::Path& path) {
  auto about = path;
  return about += ".about.json";
}

base::Json CorpusFile::read_about(const base::Path& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(about(path), ignored)) return {};
  try {
    auto json = base::read_own_json(about(path));
    if (record::checksum_fits(json)) return json;
  } catch (const base::JsonFault&) {
  }
  return {};
}

// A budget is reached by the text that crosses it, so less than an earlier one is there or is not.
bool CorpusFile::fits(const base::Json& about, const base::Json& settings, std::int64_t budget_tokens) {
  if (!about.is_object() || about.value(keys::kSettings, base::Json()) != settings) return false;
  const auto before = count_in(about, keys::kBudgetTokens), tokens = count_in(about, keys::kTokens);
  return budget_tokens == 0 || budget_tokens == before || tokens < budget_tokens;
}

CorpusFile::CorpusFile(base::Path path, base::Json settings, std::string date, std::int64_t budget_tokens,
                       bool by_question)
    : path_(std::move(path)),
      settings_(std::move(settings)),
      date_(std::move(date)),
      budget_tokens_(budget_tokens),
      by_question_(by_question) {
  std::error_code ignored;
  base::require<base::UsageError>(!holds(path_) || std::filesystem::is_regular_file(path_, ignored),
                                  path_.string(), ": expected nothing or a file, found something else",
                                  kAdvice);
  lock_ = locked(path_);
  const auto said = read_about(path_);
  const bool holds_text = holds(path_) && std::filesystem::file_size(path_, ignored) > 0;
  base::require<base::UsageError>(said.is_object() || !holds_text, path_.string(),
                                  ": expected nothing, or texts with ", about(path_).filename().string(),
                                  " beside them, found other text", kAdvice);
  if (said.is_object()) resume(said);
  file_.emplace(path_);
  if (!said.is_object()) save();
}

void CorpusFile::resume(const base::Json& about) {
  counts_ = counts_of(about);
  base::require<base::UsageError>(about.value(keys::kSettings, base::Json()) == settings_, path_.string(),
                                  ": expected texts by the same model with the same options, found others",
                                  kAdvice);
  base::require<base::UsageError>(fits(about, settings_, budget_tokens_), path_.string(),
                                  ": expected at most ", budget_tokens_, " tokens, found ", counts_.tokens,
                                  " already; ask for as many or more, or name another file.");
  date_ = about.value(keys::kDate, date_);
  exhausted_ = about.value(keys::kExhausted, false);
  std::error_code failed;
  const auto size = std::filesystem::file_size(path_, failed);
  const auto bytes = static_cast<std::uintmax_t>(counts_.bytes);
  const auto require_unchanged = [&](bool is_unchanged) {
    base::require<base::DataError>(is_unchanged, path_.string(),
                                   ": expected the texts that were written, found that the file has changed "
                                   "since; restore it, or remove it and ",
                                   CorpusFile::about(path_).filename().string(), " to begin anew.");
  };
  require_unchanged(!failed && size >= bytes);
  if (size > bytes) std::filesystem::resize_file(path_, bytes, failed);
  base::require<base::StorageError>(!failed, path_.string(), ": cannot be cut to what is whole (",
                                    failed.message(), ").");
  auto in = base::open_file(path_);
  for (std::string line; std::getline(in, line);) {
    hash_.update((line + "\n").data(), line.size() + 1);
    try {
      note_key(base::parse_json(line));
    } catch (const base::JsonFault&) {
      require_unchanged(false);
    }
  }
  base::require_was_read(in, path_);
  require_unchanged(about.value(keys::kXxh128, std::string()) == hash_.hex());
}

std::string CorpusFile::key_of(const base::Json& line) const {
  const auto messages = line.find(keys::kMessages);
  if (by_question_ && messages != line.end()) return messages->at(0).dump();
  return line.value(keys::kText, std::string());
}

void CorpusFile::note_key(const base::Json& line) {
  keys_.insert(base::hash64(key_of(line)));
}

void CorpusFile::add(CorpusRow row) {
  const auto number = row.number;
  if (number >= counts_.rows) waiting_.emplace(number, std::move(row));
  for (auto next = waiting_.find(counts_.rows); next != waiting_.end() && !finished();
       next = waiting_.find(counts_.rows)) {
    auto ready = std::move(next->second);
    waiting_.erase(next);
    judge(std::move(ready));
  }
  if (finished() || base::monotonic_seconds() - saved_at_ > kSecondsBetweenSaves) save();
}

void CorpusFile::judge(CorpusRow row) {
  if (row.fate == Fate::kept && keys_.contains(base::hash64(key_of(row.line)))) row.fate = Fate::duplicate;
  if (row.fate == Fate::kept) {
    const auto line = row.line.dump();
    const int error = file_->append(line);
    base::require<base::StorageError>(error == 0, path_.string(), ": cannot be written (",
                                      std::strerror(error),
                                      "); the texts before are kept, and the same command goes on.");
    hash_.update((line + "\n").data(), line.size() + 1);
    note_key(row.line);
    counts_.bytes += std::ssize(line) + 1;
    counts_.tokens += row.tokens;
    counts_.since_kept = 0;
  } else {
    ++counts_.since_kept;
  }
  ++counts_.rows;
  ++counts_.of[static_cast<std::size_t>(row.fate)];
  if (counts_.since_kept < kMostDropped) return;
  save();
  throw base::ValidationError(
      base::join(path_.string(), ": expected texts that are worth learning from, found none among the last ",
                 counts_.since_kept, "; of ", counts_.rows, " texts there were ", describe_dropped(counts_),
                 "; try another temperature, more new tokens, or another model."));
}

void CorpusFile::save() {
  if (const int error = file_->sync(); error != 0)
    throw base::StorageError(base::join(path_.string(), ": cannot be written (", std::strerror(error), ")."));
  auto about = to_json(counts_);
  about[keys::kSettings] = settings_;
  about[keys::kDate] = date_;
  about[keys::kBytes] = counts_.bytes;
  about[keys::kSinceKept] = counts_.since_kept;
  about[keys::kBudgetTokens] = budget_tokens_;
  about[keys::kExhausted] = exhausted_;
  about[keys::kXxh128] = hash_.hex();
  record::write_checked_json(CorpusFile::about(path_), about);
  saved_at_ = base::monotonic_seconds();
}

void CorpusFile::exhaust() {
  exhausted_ = true;
  save();
}

}  // namespace retort::pipeline
