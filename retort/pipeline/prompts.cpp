#include "retort/pipeline/prompts.h"

#include <cstring>
#include <fstream>

#include "retort/base/error.h"
#include "retort/base/output_file.h"

namespace retort::pipeline {
namespace {

constexpr const char *kPrompt = "prompt", *kMessages = "messages", *kSettings = "settings";

bool is_blank(const std::string& line) {
  return line.find_first_not_of(" \t\r") == std::string::npos;
}

base::Json prompt_of(const std::string& line, const std::string& where) {
  base::Json json;
  try {
    json = base::parse_json(line);
  } catch (const base::JsonFault& fault) {
    throw base::DataError(
        base::join(where, ": not JSON at byte ", fault.byte, " (", fault.reason, "); correct the line."));
  }
  const bool text = json.is_object() && json.contains(kPrompt) && json.at(kPrompt).is_string();
  const bool chat = json.is_object() && json.contains(kMessages) && json.at(kMessages).is_array();
  base::require<base::DataError>(text != chat, where,
                                 ": expected an object with \"prompt\", a text, or \"messages\", a list; "
                                 "write {\"prompt\": \"...\"}.");
  return json;
}

// The beginning of what an answer file begins with.
bool is_answer(std::string_view beginning) {
  return beginning.starts_with("{\"settings\":");
}

}  // namespace

std::vector<base::Json> read_prompts(const base::Path& path) {
  const auto text = base::read_file(path);
  std::vector<base::Json> prompts;
  std::size_t number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const auto end = std::min(text.find('\n', begin), text.size());
    const auto line = text.substr(begin, end - begin);
    begin = end + 1;
    ++number;
    if (!is_blank(line)) prompts.push_back(prompt_of(line, base::join(path.string(), ":", number)));
  }
  base::require<base::DataError>(!prompts.empty(), path.string(),
                                 ": expected at least one prompt, found none; write {\"prompt\": \"...\"}.");
  return prompts;
}

const base::Json& question_of(const base::Json& line) {
  return line.contains(kPrompt) ? line.at(kPrompt) : line.at(kMessages);
}

AnswerFile::AnswerFile(base::Path path, const std::vector<base::Json>& prompts, std::string settings)
    : path_(std::move(path)), settings_(std::move(settings)) {
  base::require_replaceable(path_, "what --out writes", is_answer);
  std::ifstream lines(path_);
  // A last line without its end was cut off.
  for (std::string line; std::getline(lines, line) && !lines.eof();) check(line, prompts);
}

void AnswerFile::check(const std::string& line, const std::vector<base::Json>& prompts) {
  const auto where = base::join(path_.string(), ":", count_ + 1);
  base::Json json;
  try {
    json = base::parse_json(line);
  } catch (const base::JsonFault& fault) {
    throw base::UsageError(base::join(where, ": expected an answer, found what is not JSON (", fault.reason,
                                      "); name another file with --out."));
  }
  const auto require = [&](bool good, const char* what) {
    base::require<base::UsageError>(good, where, ": ", what, "; name another file with --out, or remove it.");
  };
  require(json.is_object() && json.contains(kSettings), "expected an answer, found something else");
  require(json.at(kSettings) == settings_, "was answered by another model or with other options");
  require(count_ < prompts.size(), "there are more answers than prompts");
  const auto& prompt = prompts[count_];
  const auto* key = prompt.contains(kPrompt) ? kPrompt : kMessages;
  require(json.contains(key) && json.at(key) == prompt.at(key), "answers another prompt than that file has");
  ++count_;
}

void AnswerFile::require_written(int error) const {
  base::require<base::StorageError>(error == 0, path_.string(), ": cannot be written (", std::strerror(error),
                                    "); the answers before are kept, and the same command goes on.");
}

void AnswerFile::add(std::size_t prompt, base::Json answer) {
  waiting_.emplace(prompt, std::move(answer));
  for (auto next = waiting_.find(count_); next != waiting_.end(); next = waiting_.find(count_)) {
    // In this order, by which the file is known.
    auto line = base::Json{{kSettings, settings_}}.dump();
    line.back() = ',';
    require_written(file_->append(line + next->second.dump().substr(1)));
    waiting_.erase(next);
    ++count_;
  }
}

void AnswerFile::finish() {
  require_written(file_->sync());
}

}  // namespace retort::pipeline
