#pragma once
// Parquet files for tests, written by Apache Arrow.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace retort::test {

struct ParquetSettings {
  std::string column = "text";
  std::string codec = "snappy";
  std::int64_t rows_of_group = 1'000'000;
  std::int64_t page_bytes = 1 << 20;
  bool dictionary = false;
  bool checksums = false;
  bool as_text = true;  ///< otherwise the bytes are no text by what the file says
};

/// One column of texts; nothing is null.
void write_parquet(const std::filesystem::path& path, const std::vector<std::optional<std::string>>& texts,
                   const ParquetSettings& settings = {});

/// The columns number (int64), answer {value (text), score (float)}, turns [{role, content}] of `rows` rows.
void write_nested_parquet(const std::filesystem::path& path, std::int64_t rows, std::int64_t rows_of_group);

}  // namespace retort::test
