#include "retort/pipeline/vocabulary.h"

#include <filesystem>
#include <optional>
#include <system_error>

#include "retort/base/error.h"
#include "retort/base/hash.h"
#include "retort/io/quote.h"
#include "retort/text/token_difference.h"
#include "retort/text/tokenizer.h"

namespace retort::pipeline {
namespace {

base::Path file_of(const base::Path& path) {
  return std::filesystem::is_directory(path) ? path / "tokenizer.json" : path;
}

bool same_file(const base::Path& a, const base::Path& b) {
  std::error_code ignored;
  return std::filesystem::equivalent(a, b, ignored) || base::hash_file(a) == base::hash_file(b);
}

std::string shown(const std::optional<std::string>& token) {
  return token ? io::quote(*token) : "no token";
}

}  // namespace

std::int64_t require_same_tokens(const std::string& who, const NamedTokenizer& student,
                                 const NamedTokenizer& teacher) {
  const auto of_student = text::Tokenizer::from_file(student.path);
  if (same_file(file_of(student.path), file_of(teacher.path))) return of_student.vocab_size();
  const auto difference = text::first_difference(of_student, text::Tokenizer::from_file(teacher.path));
  if (difference)
    throw base::ModelError(base::join(who, ": expected the same tokens in ", student.name,
                                      " and its teacher ", teacher.name, ", found the id ", difference->id,
                                      " to be ", shown(difference->first), " and ", shown(difference->second),
                                      "; compare models with the same vocabulary."));
  return of_student.vocab_size();
}

}  // namespace retort::pipeline
