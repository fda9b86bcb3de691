// A Parquet file: its first byte chooses how it is read, the rest is what it holds.  Apache Arrow itself is
// built without sanitizers.
#include <algorithm>

#include "fuzz/harness.h"
#include "retort/parquet/table.h"

using namespace retort;

namespace {

// Less than libFuzzer grants the process, so that it is the reader that refuses.
constexpr parquet::Limits kLimits{.memory_bytes = std::size_t{1} << 28, .value_bytes = std::size_t{1} << 26};
constexpr std::int64_t kMostTexts = 100'000;
constexpr std::int64_t kMostRows = 20;  // of up to millions of values each
constexpr std::size_t kMostColumns = 16;

void read_texts(const parquet::Table& table, const std::string& column) {
  std::int64_t read = 0;
  std::size_t bytes = 0;
  const auto texts = table.texts(column);
  for (; read < kMostTexts && texts->next(); ++read) bytes += texts->text().value_or("").size();
  fuzz::require(read == std::min(table.rows(), kMostTexts), "as many texts as rows");
  fuzz::require(!texts->place().empty() && bytes < SIZE_MAX, "every text has a place");
}

void skip_and_read(const parquet::Table& table, const std::string& column, std::int64_t skipped) {
  const auto texts = table.texts(column);
  fuzz::require(texts->skip(skipped) == std::min(table.rows(), skipped),
                "as many are passed over as there are");
  fuzz::require(texts->next() == (table.rows() > skipped), "the rest is read");
}

void read_rows(const parquet::Table& table) {
  std::int64_t read = 0;
  const auto rows = table.read({});
  for (base::Json row; read < kMostRows && rows->next(row); ++read)
    fuzz::require(row.is_object(), "a row is an object");
  fuzz::require(read == std::min(table.rows(), kMostRows), "as many rows as the file says");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const base::Path path = fuzz::folder() / "a.parquet";
  fuzz::write(path, fuzz::text_of(data + 1, size - 1));
  const int choice = data[0];
  fuzz::taken([&] {
    const auto table = parquet::open(path, kLimits);
    if (choice % 3 == 0) return read_rows(*table);
    for (std::size_t i = 0; i < table->columns().size() && i < kMostColumns; ++i) {
      const auto& column = table->columns()[i].name;
      fuzz::taken(
          [&] { choice % 3 == 1 ? read_texts(*table, column) : skip_and_read(*table, column, choice); });
    }
  });
  return 0;
}
