#pragma once
// Reads what tests/oracles/text.py writes.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "retort/text/tokenizer.h"

namespace retort::test {

struct TokenizerCase {
  std::optional<std::string> text;  ///< absent: ids drawn at random
  std::vector<std::int32_t> ids;
  std::vector<std::int32_t> ids_no_special;
  std::string decoded;
  std::string decoded_with_special;
};

/// Lines of a file, without their ends.
std::vector<std::string> lines_of(const std::filesystem::path& file);

std::vector<TokenizerCase> read_cases(const std::filesystem::path& file);

/// Compares ids and texts with those of a file of at least so many cases.
void expect_cases(const text::Tokenizer& tokenizer, const std::filesystem::path& file, std::size_t at_least);

/// That a text which grows id by id is always that of all ids so far, and what is settled stays.
void expect_decoded_as_it_grows(const text::Tokenizer& tokenizer, const std::vector<std::int32_t>& ids);

/// Rows of uint32 size and so many bytes.
std::vector<std::string> read_rows(const std::filesystem::path& file);

std::vector<std::filesystem::path> folders_in(const std::filesystem::path& folder);

}  // namespace retort::test
