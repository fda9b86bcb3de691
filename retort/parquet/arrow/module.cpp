#include "retort/parquet/module.h"

#include "retort/parquet/arrow/opened_file.h"
#include "retort/parquet/arrow/rows.h"
#include "retort/parquet/arrow/texts.h"

namespace retort::parquet {
namespace {

class FileTable : public Table {
 public:
  FileTable(const base::Path& path, const Limits& limits)
      : file_(std::make_shared<OpenedFile>(path, limits)) {
    for (const std::int64_t rows : file_->rows_of_groups) rows_ += rows;
  }

  const std::vector<Column>& columns() const override { return file_->columns; }
  std::int64_t rows() const override { return rows_; }
  const std::vector<std::int64_t>& rows_of_groups() const override { return file_->rows_of_groups; }
  std::unique_ptr<Texts> texts(std::string_view column) const override { return read_texts(file_, column); }
  std::unique_ptr<Rows> read(const std::vector<std::string>& columns) const override {
    return read_rows(file_, columns);
  }

 private:
  std::shared_ptr<const OpenedFile> file_;
  std::int64_t rows_ = 0;
};

}  // namespace
}  // namespace retort::parquet

const char* retort_parquet_release() {
  return RETORT_RELEASE;
}

retort::parquet::Table* retort_parquet_open(const retort::base::Path& path,
                                            const retort::parquet::Limits& limits) {
  return new retort::parquet::FileTable(path, limits);
}
