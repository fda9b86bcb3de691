#include "retort/parquet/arrow/texts.h"

#include <arrow/type.h>
#include <parquet/column_reader.h>

#include <algorithm>
#include <array>

#include "retort/base/printable.h"
#include "retort/parquet/arrow/columns.h"

namespace retort::parquet {
namespace {

using ::parquet::ByteArray;

bool is_text(const arrow::DataType& type) {
  if (type.id() == arrow::Type::DICTIONARY)
    return is_text(*static_cast<const arrow::DictionaryType&>(type).value_type());
  return type.id() == arrow::Type::STRING || type.id() == arrow::Type::LARGE_STRING ||
         type.id() == arrow::Type::STRING_VIEW;
}

// The number of the leaf that holds the texts.
int text_leaf(const OpenedFile& file, std::string_view name) {
  const Asked asked = find_column(file, name);
  const auto& type = *asked.field->field->type();
  const bool is_leaf = asked.field->is_leaf() && !asked.in_list;
  base::require<base::DataError>(
      is_leaf && is_text(type) &&
          file.metadata().schema()->Column(asked.field->column_index)->physical_type() ==
              ::parquet::Type::BYTE_ARRAY,
      file.path.string(), ": expected text as the column ", base::quote(name), ", found ",
      asked.in_list ? "a list of " : "", base::printable(type.ToString()), "; name a column of strings.");
  return asked.field->column_index;
}

// Texts stay where Arrow decompressed them.
class ColumnTexts : public Texts {
 public:
  ColumnTexts(std::shared_ptr<const OpenedFile> file, std::string_view column)
      : file_(std::move(file)),
        leaf_(text_leaf(*file_, column)),
        present_level_(file_->metadata().schema()->Column(leaf_)->max_definition_level()),
        column_(column) {}

  bool next() override {
    while (row_ + 1 >= rows_of_group())
      if (!next_group()) return false;
    if (at_ + 1 >= filled_) fill();
    ++at_;
    ++row_;
    text_ = levels_[static_cast<std::size_t>(at_)] == present_level_ ? std::optional(values_[value_++])
                                                                     : std::nullopt;
    if (text_ && text_->len > file_->limits.value_bytes)
      refuse(here(), base::join("texts of at most ", file_->limits.value_bytes, " bytes"),
             base::join("one of ", text_->len));
    return true;
  }

  std::optional<std::string_view> text() const override {
    return text_ ? std::optional(std::string_view(*text_)) : std::nullopt;
  }

  std::int64_t skip(std::int64_t rows) override {
    std::int64_t passed = 0;
    while (passed < rows) {
      const std::int64_t left = rows_of_group() - (row_ + 1);
      if (left <= rows - passed) {
        passed += left;
        row_ += left;
        if (!next_group()) break;
      } else {
        skip_within(rows - passed);
        passed = rows;
      }
    }
    text_.reset();
    return passed;
  }

  std::string place() const override { return here().words(); }

 private:
  static constexpr std::size_t kBatch = 256;

  Place here() const {
    return {.file = file_->path.string(), .row_group = std::max(group_, 0), .row = row_, .column = column_};
  }
  Place group_place() const { return {.file = file_->path.string(), .row_group = group_, .column = column_}; }

  std::int64_t rows_of_group() const {
    return group_ < 0 || group_ >= file_->groups() ? 0
                                                   : file_->rows_of_groups[static_cast<std::size_t>(group_)];
  }

  bool next_group() {
    if (group_ + 1 >= file_->groups()) return false;
    ++group_;
    row_ = -1;
    empty_batch();
    reader_.reset();
    return true;
  }

  void open_group() {
    if (reader_) return;
    guarded(group_place(), file_->pool, [&] {
      const auto group = file_->pages().RowGroup(group_);
      const auto values = group->metadata()->ColumnChunk(leaf_)->num_values();
      if (values != rows_of_group())
        refuse(group_place(), base::join("as many values as rows, ", rows_of_group()), base::join(values));
      reader_ = std::dynamic_pointer_cast<::parquet::ByteArrayReader>(group->Column(leaf_));
      base::ensure(reader_ != nullptr, "a column of byte arrays has a reader of byte arrays");
    });
  }

  // Reads values up to the end of a page, behind which the earlier ones are gone.
  void fill() {
    open_group();
    empty_batch();
    guarded(group_place(), file_->pool, [&] {
      std::int64_t values = 0;
      while (filled_ == 0 && reader_->HasNext())
        filled_ = reader_->ReadBatch(kBatch, levels_.data(), nullptr, values_.data(), &values);
      if (present_level_ == 0) levels_.fill(0);  // which Arrow leaves as they are
      const auto present = std::count(levels_.begin(), levels_.begin() + filled_, present_level_);
      if (present != values)
        refuse(group_place(), base::join(present, " values as the levels say"), base::join(values));
    });
    if (filled_ <= 0)
      refuse(group_place(), base::join(rows_of_group(), " rows as the row group says"), base::join(row_ + 1));
  }

  void skip_within(std::int64_t rows) {
    for (; rows > 0 && at_ + 1 < filled_; --rows) {
      ++at_;
      ++row_;
      if (levels_[static_cast<std::size_t>(at_)] == present_level_) ++value_;
    }
    if (rows == 0) return;
    open_group();
    const auto passed = guarded(group_place(), file_->pool, [&] { return reader_->Skip(rows); });
    if (passed != rows)
      refuse(group_place(), base::join(rows_of_group(), " rows as the row group says"),
             base::join(row_ + 1 + passed));
    row_ += rows;
    empty_batch();
  }

  void empty_batch() {
    filled_ = 0;
    at_ = -1;
    value_ = 0;
    text_.reset();
  }

  std::shared_ptr<const OpenedFile> file_;
  int leaf_;
  std::int16_t present_level_;  // the definition level of a text that is not null
  std::string column_;
  std::shared_ptr<::parquet::ByteArrayReader> reader_;  // of the row group; opened with its first row
  int group_ = -1;
  std::int64_t row_ = -1;  // of the row group, read last
  std::array<std::int16_t, kBatch> levels_{};
  std::array<ByteArray, kBatch> values_{};
  std::int64_t filled_ = 0;  // rows in the batch
  std::int64_t at_ = -1;     // the row read last in the batch
  std::size_t value_ = 0;    // the next value in the batch
  std::optional<ByteArray> text_;
};

}  // namespace

std::unique_ptr<Texts> read_texts(std::shared_ptr<const OpenedFile> file, std::string_view column) {
  return std::make_unique<ColumnTexts>(std::move(file), column);
}

}  // namespace retort::parquet
