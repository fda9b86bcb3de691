#include "retort/data/parquet_records.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

#include "retort/base/error.h"
#include "retort/data/conversations.h"
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

// Rows that are passed over are read no sooner than the row behind them.
class ParquetReader : public RecordReader {
 public:
  ParquetReader(const SourceOptions& source, const base::Path& path)
      : table_(parquet::open(path, {.value_bytes = kMaxDocumentBytes})),
        skip_bad_rows_(source.skip_bad_lines) {}

  bool skip() override {
    if (passed_ >= table_->rows()) return false;
    ++passed_;
    ++unread_;
    return true;
  }

 protected:
  // Goes to the next row of `rows`, which reads into `into`; false at the end.
  template <typename Rows, typename... Into>
  bool go_on(Rows& rows, Into&... into) {
    if (const auto count = std::exchange(unread_, 0); count > 0) rows.skip(count);
    if (!rows.next(into...)) return false;
    ++passed_;
    return true;
  }

  std::unique_ptr<parquet::Table> table_;
  bool skip_bad_rows_;

 private:
  std::int64_t passed_ = 0;  // rows, read or not
  std::int64_t unread_ = 0;  // of these, which the file has yet to pass over
};

class ParquetRecords : public ParquetReader {
 public:
  ParquetRecords(const SourceOptions& source, const base::Path& path) : ParquetReader(source, path) {
    require_no_chat(*table_, source, path);
    texts_ = table_->texts(source.field);
  }

  Record next(std::string& text) override {
    if (!go_on(*texts_)) return Record::end;
    const auto found = texts_->text();
    const auto good = found ? text::valid_utf8_prefix(*found) : 0;
    if (!found || good < found->size()) {
      if (skip_bad_rows_) return Record::bad;
      refuse(found, good);
    }
    text.assign(*found);
    return Record::document;
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

  std::unique_ptr<parquet::Texts> texts_;
};

// Those of the columns that may hold a conversation.
std::vector<std::string> chat_columns(const parquet::Table& table, const SourceOptions& source,
                                      const base::Path& path) {
  constexpr std::array kKeys{"messages",    "conversations", "prompt", "completion",
                             "instruction", "input",         "output", "tools"};
  const bool named = source.field != "text";
  std::vector<std::string> columns;
  std::string all;
  for (const auto& column : table.columns()) {
    all += (all.empty() ? "" : ", ") + io::quote(column.name);
    const bool known = std::ranges::find(kKeys, column.name) != kKeys.end();
    if (named ? column.name == source.field || column.name == "tools" : known) columns.push_back(column.name);
  }
  base::require<base::DataError>(
      !columns.empty(), path.string(),
      ": expected conversations in a column \"messages\", \"conversations\" or one "
      "that field names, found the columns ",
      all, "; a source of plain text has no chat: true.");
  return columns;
}

class ParquetChats : public ParquetReader {
 public:
  ParquetChats(const SourceOptions& source, const base::Path& path)
      : ParquetReader(source, path),
        field_(source.field),
        rows_(table_->read(chat_columns(*table_, source, path))) {}

  Record next(std::string& text) override {
    base::Json row;
    if (!go_on(*rows_, row)) return Record::end;
    try {
      text = conversation_text(row, field_);
      return Record::document;
    } catch (const base::JsonFault& fault) {
      if (skip_bad_rows_) return Record::bad;
      throw base::DataError(base::join(rows_->place(), ": ", fault.reason,
                                       "; correct the row or let the recipe skip bad lines."));
    }
  }

 private:
  std::string field_;
  std::unique_ptr<parquet::Rows> rows_;
};

}  // namespace

std::unique_ptr<RecordReader> open_parquet_chats(const SourceOptions& source, const base::Path& path) {
  return std::make_unique<ParquetChats>(source, path);
}

std::unique_ptr<RecordReader> open_parquet(const SourceOptions& source, const base::Path& path) {
  return std::make_unique<ParquetRecords>(source, path);
}

}  // namespace retort::data
