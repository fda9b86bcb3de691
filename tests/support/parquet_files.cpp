#include "support/parquet_files.h"

#include <arrow/api.h>
#include <arrow/io/file.h>
#include <arrow/util/compression.h>
#include <parquet/arrow/writer.h>

#include <stdexcept>

namespace retort::test {
namespace {

template <typename Value>
Value taken(arrow::Result<Value> result) {
  if (!result.ok()) throw std::runtime_error(result.status().ToString());
  return std::move(result).ValueUnsafe();
}

void require(const arrow::Status& status) {
  if (!status.ok()) throw std::runtime_error(status.ToString());
}

void write(const std::filesystem::path& path, const std::shared_ptr<arrow::Table>& table,
           const ParquetSettings& settings) {
  ::parquet::WriterProperties::Builder properties;
  properties.compression(taken(arrow::util::Codec::GetCompressionType(settings.codec)));
  properties.data_pagesize(settings.page_bytes);
  properties.write_batch_size(16);
  if (!settings.dictionary) properties.disable_dictionary();
  if (settings.checksums) properties.enable_page_checksum();
  const auto out = taken(arrow::io::FileOutputStream::Open(path.string()));
  require(::parquet::arrow::WriteTable(*table, arrow::default_memory_pool(), out, settings.rows_of_group,
                                       properties.build()));
  require(out->Close());
}

template <typename Builder>
std::shared_ptr<arrow::Array> array_of(const std::vector<std::optional<std::string>>& texts) {
  Builder builder;
  for (const auto& text : texts) require(text ? builder.Append(*text) : builder.AppendNull());
  return taken(builder.Finish());
}

std::shared_ptr<arrow::Array> numbered_texts(const std::string& before, std::int64_t rows) {
  arrow::StringBuilder builder;
  for (std::int64_t i = 0; i < rows; ++i) require(builder.Append(before + std::to_string(i)));
  return taken(builder.Finish());
}

}  // namespace

void write_parquet(const std::filesystem::path& path, const std::vector<std::optional<std::string>>& texts,
                   const ParquetSettings& settings) {
  const auto array =
      settings.as_text ? array_of<arrow::StringBuilder>(texts) : array_of<arrow::BinaryBuilder>(texts);
  write(path, arrow::Table::Make(arrow::schema({arrow::field(settings.column, array->type())}), {array}),
        settings);
}

void write_nested_parquet(const std::filesystem::path& path, std::int64_t rows, std::int64_t rows_of_group) {
  arrow::Int64Builder numbers;
  arrow::FloatBuilder scores;
  arrow::Int32Builder offsets;
  for (std::int64_t i = 0; i < rows; ++i) {
    require(numbers.Append(i));
    require(scores.Append(static_cast<float>(i) / 2));
    require(offsets.Append(static_cast<std::int32_t>(2 * i)));
  }
  require(offsets.Append(static_cast<std::int32_t>(2 * rows)));
  const auto answer = taken(arrow::StructArray::Make(
      {numbered_texts("answer ", rows), taken(scores.Finish())}, std::vector<std::string>{"value", "score"}));
  const auto turn = taken(
      arrow::StructArray::Make({numbered_texts("role ", 2 * rows), numbered_texts("content ", 2 * rows)},
                               std::vector<std::string>{"role", "content"}));
  const auto turns = taken(arrow::ListArray::FromArrays(*taken(offsets.Finish()), *turn));
  const auto schema =
      arrow::schema({arrow::field("number", arrow::int64()), arrow::field("answer", answer->type()),
                     arrow::field("turns", turns->type())});
  write(path, arrow::Table::Make(schema, {taken(numbers.Finish()), answer, turns}),
        {.rows_of_group = rows_of_group});
}

}  // namespace retort::test
