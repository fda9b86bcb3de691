#include "retort/parquet/arrow/rows.h"

#include <arrow/record_batch.h>
#include <arrow/type.h>

#include <algorithm>
#include <map>
#include <set>

#include "retort/base/printable.h"
#include "retort/parquet/arrow/columns.h"
#include "retort/parquet/arrow/json_values.h"

namespace retort::parquet {
namespace {

constexpr std::int64_t kBatchBytes = std::int64_t{16} << 20;
constexpr std::int64_t kMostRowsOfBatch = 1024;

// A column of the row group that is read, a batch of rows at a time.
class ColumnRows {
 public:
  ColumnRows(const OpenedFile& file, std::string name, std::vector<int> leaves)
      : file_(file), name_(std::move(name)), leaves_(std::move(leaves)) {}

  const std::string& name() const { return name_; }

  void open_group(int group) {
    group_ = group;
    batch_.reset();
    at_ = 0;
    guarded(place(-1), file_.pool, [&] {
      file_.reader->set_batch_size(rows_of_batch());
      reader_ = taken(place(-1), file_.pool, file_.reader->GetRecordBatchReader({group}, leaves_));
      for (const auto& field : reader_->schema()->fields()) require_json_type(place(-1), *field->type());
    });
  }

  base::Json next(std::int64_t row) {
    fill(row);
    const Place here = place(row);
    return guarded(here, file_.pool, [&] { return JsonValues(here).value(*batch_->column(0), at_++); });
  }

  void skip(std::int64_t row, std::int64_t rows) {
    while (rows > 0) {
      fill(row);
      const auto passed = std::min(rows, batch_->num_rows() - at_);
      at_ += passed;
      row += passed;
      rows -= passed;
    }
  }

 private:
  Place place(std::int64_t row) const {
    return {.file = file_.path.string(), .row_group = group_, .row = row, .column = name_};
  }

  // By what the file says of the row group's size, which memory does not depend on.
  std::int64_t rows_of_batch() const {
    const auto group = file_.metadata().RowGroup(group_);
    std::int64_t bytes = 0;
    for (const int leaf : leaves_)
      bytes += std::max<std::int64_t>(group->ColumnChunk(leaf)->total_uncompressed_size(), 0) / 4;
    const std::int64_t of_row =
        std::max<std::int64_t>(bytes / std::max<std::int64_t>(group->num_rows(), 1) * 4, 1);
    return std::clamp<std::int64_t>(kBatchBytes / of_row, 1, kMostRowsOfBatch);
  }

  void fill(std::int64_t row) {
    if (batch_ && at_ < batch_->num_rows()) return;
    at_ = 0;
    guarded(place(-1), file_.pool, [&] {
      do {
        batch_.reset();  // before the next one takes its memory
        require_ok(place(-1), file_.pool, reader_->ReadNext(&batch_));
      } while (batch_ && batch_->num_rows() == 0);
    });
    if (!batch_)
      refuse(
          place(-1),
          base::join(file_.rows_of_groups[static_cast<std::size_t>(group_)], " rows as the row group says"),
          base::join(row));
  }

  const OpenedFile& file_;
  std::string name_;
  std::vector<int> leaves_;
  int group_ = 0;
  std::unique_ptr<arrow::RecordBatchReader> reader_;
  std::shared_ptr<arrow::RecordBatch> batch_;
  std::int64_t at_ = 0;
};

class TableRows : public Rows {
 public:
  TableRows(std::shared_ptr<const OpenedFile> file, std::vector<ColumnRows> columns)
      : file_(std::move(file)), columns_(std::move(columns)) {}

  bool next(base::Json& row) override {
    while (row_ + 1 >= rows_of_group())
      if (!next_group()) return false;
    open_group();
    row = base::Json::object();
    ++row_;
    for (auto& column : columns_) row[column.name()] = column.next(row_);
    return true;
  }

  std::int64_t skip(std::int64_t rows) override {
    std::int64_t passed = 0;
    while (passed < rows) {
      const std::int64_t left = rows_of_group() - (row_ + 1);
      const std::int64_t here = std::min(left, rows - passed);
      if (here < left) {
        open_group();
        for (auto& column : columns_) column.skip(row_ + 1, here);
      }
      passed += here;
      row_ += here;
      if (here == left && !next_group()) break;
    }
    return passed;
  }

  std::string place() const override {
    return Place{.file = file_->path.string(), .row_group = std::max(group_, 0), .row = row_}.words();
  }

 private:
  std::int64_t rows_of_group() const {
    return group_ < 0 ? 0 : file_->rows_of_groups[static_cast<std::size_t>(group_)];
  }

  bool next_group() {
    if (group_ + 1 >= file_->groups()) return false;
    ++group_;
    row_ = -1;
    open_ = false;
    return true;
  }

  void open_group() {
    if (open_) return;
    for (auto& column : columns_) column.open_group(group_);
    open_ = true;
  }

  std::shared_ptr<const OpenedFile> file_;
  std::vector<ColumnRows> columns_;
  int group_ = -1;
  std::int64_t row_ = -1;  // of the row group, read last
  bool open_ = false;
};

// The leaves that are wanted of each top-level column, both in the order of the file.
std::map<std::size_t, std::set<int>> wanted_leaves(const OpenedFile& file,
                                                   const std::vector<std::string>& names) {
  std::map<std::size_t, std::set<int>> wanted;
  const auto& fields = file.reader->manifest().schema_fields;
  const auto want = [&](std::size_t column, const ::parquet::arrow::SchemaField& field) {
    const auto leaves = leaves_of(field);
    wanted[column].insert(leaves.begin(), leaves.end());
  };
  for (const auto& name : names) {
    const Asked asked = find_column(file, name);
    want(asked.column, *asked.field);
  }
  if (names.empty())
    for (std::size_t column = 0; column < fields.size(); ++column) want(column, fields[column]);
  return wanted;
}

}  // namespace

std::unique_ptr<Rows> read_rows(std::shared_ptr<const OpenedFile> file,
                                const std::vector<std::string>& names) {
  std::vector<ColumnRows> columns;
  std::set<std::string> taken;
  for (const auto& [column, leaves] : wanted_leaves(*file, names)) {
    const auto& name = file->columns[column].name;
    base::require<base::DataError>(taken.insert(name).second, file->path.string(),
                                   ": expected columns of different names, found two named ",
                                   base::quote(name), "; rename one of them.");
    columns.emplace_back(*file, name, std::vector<int>(leaves.begin(), leaves.end()));
  }
  base::require<base::DataError>(!columns.empty(), file->path.string(),
                                 ": expected columns, found none; write the table with its columns.");
  return std::make_unique<TableRows>(std::move(file), std::move(columns));
}

}  // namespace retort::parquet
