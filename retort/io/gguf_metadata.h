#pragma once
// Metadata of a GGUF file by key and kind; a value of another kind is an error that names file and key.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "retort/io/gguf.h"

namespace retort::io {

/// Valid as long as what it is made of.  Absent keys give nothing; functions throw ModelError for a value of
/// another kind than they are asked for.
class MetadataReader {
 public:
  MetadataReader(const GgufMetadata& metadata, const std::string& where)
      : metadata_(metadata), where_(where) {}

  const std::string& where() const { return where_; }
  const GgufMetadata& all() const { return metadata_; }
  bool contains(std::string_view key) const { return find(key) != nullptr; }

  std::optional<std::string> text(std::string_view key) const;
  std::optional<bool> flag(std::string_view key) const;
  /// Finite: config.json could not say another number, and its reader would take the key for absent.
  std::optional<double> number(std::string_view key) const;
  /// A whole number from 0 to 2^31 - 1.
  std::optional<std::int64_t> count(std::string_view key) const;
  std::int64_t required_count(std::string_view key) const;
  bool is_list(std::string_view key) const;
  /// A list of so many whole numbers from 0 to 2^31 - 1.
  std::vector<std::int64_t> counts(std::string_view key, std::int64_t number) const;
  /// A list; of texts where `texts`, else of numbers.
  const base::Json* list(std::string_view key, bool texts) const;

 private:
  const base::Json* find(std::string_view key) const;
  std::int64_t count_of(std::string_view key, const base::Json& value) const;
  [[noreturn]] void refuse(std::string_view key, const base::Json& value, const char* expected) const;

  const GgufMetadata& metadata_;
  const std::string& where_;
};

}  // namespace retort::io
