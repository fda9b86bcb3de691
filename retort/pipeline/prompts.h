#pragma once
// Files of prompts and of answers: a JSON object a line each.

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "retort/base/files.h"
#include "retort/base/json.h"
#include "retort/base/line_file.h"

namespace retort::pipeline {

/// The lines of a file, {"prompt": TEXT} or {"messages": [...]}; blank ones are passed over.  Throws
/// DataError, with the line, for what is no prompt, and StorageError.
std::vector<base::Json> read_prompts(const base::Path& path);

/// What was asked: the prompt, or the messages.
const base::Json& question_of(const base::Json& line);

/// Answers in the order of their prompts, in a file that is gone on with.
class AnswerFile {
 public:
  /// `settings`: what answers depend on besides their prompts, as a short text that stands in each line.
  /// Throws UsageError where the file holds something else, answers to other prompts or with other settings.
  AnswerFile(base::Path path, const std::vector<base::Json>& prompts, std::string settings);

  /// Those that the file has.
  std::size_t count() const { return count_; }
  /// Makes the file, or drops a last line that was cut off; before add().  Throws StorageError.
  void open() { file_.emplace(path_); }
  /// Of any prompt behind these.  It is written when all before it are.
  void add(std::size_t prompt, base::Json answer);
  /// Makes all durable.
  void finish();

 private:
  void check(const std::string& line, const std::vector<base::Json>& prompts);
  void require_written(int error) const;

  base::Path path_;
  std::string settings_;
  std::size_t count_ = 0;
  std::map<std::size_t, base::Json> waiting_;
  std::optional<base::LineFile> file_;
};

}  // namespace retort::pipeline
