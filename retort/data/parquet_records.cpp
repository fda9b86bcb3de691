#include "retort/data/parquet_records.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "retort/base/error.h"
#include "retort/io/quote.h"
#include "retort/parquet/table.h"
#include "retort/text/unicode.h"

namespace retort::data {
namespace {

bool is_chat(const parquet::Column& column) {
  const auto has = [&](const char* part) { return column.type.find(part) != std::string::npos; };
  return column.type.find("list<") != std::string::npos &&
         ((has("role: ") && has("content: ")) || (has("from: ") && has("value: ")));
}

// Where the field names no column, a chat is what the file has instead of texts.
void require_no_chat(const parquet::Table& table, const SourceOptions& source, const base::Path& path) {
  for (const auto& column : table.columns())
    if (source.field == column.name || source.field.starts_with(column.name + ".")) return;
  for (const auto& column : table.columns())
    base::require<base::DataError>(!is_chat(column), path.string(), ": expected text as ",
                                   io::quote(source.field), ", found a chat as ", io::quote(column.name),
                                   kNoChats, ".");
}

class ParquetRecords : public RecordReader {
 public:
  ParquetRecords(const SourceOptions& source, const base::Path& path)
      : table_(parquet::open(path, {.value_bytes = kMaxDocumentBytes})),
        skip_bad_rows_(source.skip_bad_lines) {
    require_no_chat(*table_, source, path);
    texts_ = table_->texts(source.field);
  }

  Record next(std::string& text) override {
    if (const auto rows = std::exchange(unread_, 0); rows > 0) texts_->skip(rows);
    if (!texts_->next()) return Record::end;
    ++passed_;
    const auto found = texts_->text();
    const auto good = found ? text::valid_utf8_prefix(*found) : 0;
    if (!found || good < found->size()) {
      if (skip_bad_rows_) return Record::bad;
      refuse(found, good);
    }
    text.assign(*found);
    return Record::document;
  }

  bool skip() override {
    if (passed_ >= table_->rows()) return false;
    ++passed_;
    ++unread_;
    return true;
  }

 private:
  [[noreturn]] void refuse(std::optional<std::string_view> found, std::size_t good) const {
    std::string what = ": expected text, found null";
    if (found) {
      char byte[8];
      std::snprintf(byte, sizeof byte, "0x%02X",
                    static_cast<unsigned>(static_cast<unsigned char>((*found)[good])));
      what = base::join(", byte ", good, " of the text: expected UTF-8, found the byte ", byte);
    }
    throw base::DataError(
        base::join(texts_->place(), what, "; correct the row or let the recipe skip bad lines."));
  }

  std::unique_ptr<parquet::Table> table_;
  std::unique_ptr<parquet::Texts> texts_;
  bool skip_bad_rows_;
  std::int64_t passed_ = 0;  // rows, read or not
  std::int64_t unread_ = 0;  // of these, which the texts have yet to pass over
};

}  // namespace

std::unique_ptr<RecordReader> open_parquet(const SourceOptions& source, const base::Path& path) {
  return std::make_unique<ParquetRecords>(source, path);
}

}  // namespace retort::data
