#include "retort/parquet/arrow/opened_file.h"

#include <arrow/io/file.h>
#include <arrow/type.h>
#include <fcntl.h>
#include <parquet/arrow/schema.h>
#include <parquet/properties.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "retort/base/regular_file.h"

namespace retort::parquet {
namespace {

using base::DataError;
using base::require;

// The length of what the file says of itself and the magic, at its end.
constexpr std::int64_t kTailBytes = 8;
constexpr std::int64_t kLeastBytes = 12;
// Structures of a few bytes take hundreds in memory, which no pool counts.
constexpr std::int64_t kMostFooterBytes = std::int64_t{64} << 20;
constexpr std::int32_t kMostColumns = 100'000;                   // and row groups
constexpr std::int32_t kMostTextBytes = std::int32_t{16} << 20;  // of a text in the footer
constexpr std::int64_t kStreamBytes = std::int64_t{1} << 18;

class Descriptor {
 public:
  explicit Descriptor(const base::Path& path) {
    const auto why = base::why_no_file(path);
    require<DataError>(why.empty(), path.string(), " ", why, ".");
    number_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    require<base::StorageError>(number_ >= 0, path.string(),
                                ": cannot be opened: ", base::system_message(errno), "; check the path.");
  }
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int number() const { return number_; }
  int release() { return std::exchange(number_, -1); }

 private:
  int number_;
};

template <std::size_t kBytes>
std::array<char, kBytes> bytes_at(int file, std::int64_t offset) {
  std::array<char, kBytes> bytes{};
  for (std::size_t done = 0; done < kBytes;) {
    const auto count =
        ::pread(file, bytes.data() + done, kBytes - done, offset + static_cast<std::int64_t>(done));
    if (count <= 0) break;
    done += static_cast<std::size_t>(count);
  }
  return bytes;
}

// Refuses what is cut or no Parquet file before anything is allocated for it.
void check_ends(const base::Path& path, int file) {
  struct stat status {};
  require<base::StorageError>(::fstat(file, &status) == 0, path.string(), ": ", base::system_message(errno),
                              ".");
  const std::int64_t size = status.st_size;
  const auto name = path.string();
  const auto head = bytes_at<4>(file, 0);
  const std::string_view first(head.data(), head.size());
  require<DataError>(first != "PARE", name,
                     ": expected a Parquet file, found an encrypted one; write it without encryption.");
  require<DataError>(size >= 4 && first == kMagic, name, ": expected a Parquet file, which begins with ",
                     kMagic, ", found something else; name a file that is one.");
  const char* const fetch = "; fetch the file again.";
  require<DataError>(size >= kLeastBytes, name, ": expected a Parquet file that is whole, found one of ",
                     size, " bytes", fetch);
  const auto tail = bytes_at<kTailBytes>(file, size - kTailBytes);
  const std::string_view last(tail.data() + 4, 4);
  require<DataError>(last != "PARE", name,
                     ": expected a Parquet file, found an encrypted one; write it without encryption.");
  require<DataError>(last == kMagic, name,
                     ": expected a Parquet file that is whole, found one whose end is missing", fetch);
  std::uint32_t length = 0;
  std::memcpy(&length, tail.data(), sizeof length);
  require<DataError>(length <= size - kLeastBytes, name,
                     ": expected a description within the file, found one of ", length, " bytes in ", size,
                     fetch);
  require<DataError>(length <= kMostFooterBytes, name, ": expected a description of at most ",
                     kMostFooterBytes, " bytes, found one of ", length,
                     "; write the file with fewer columns or row groups.");
}

::parquet::ReaderProperties properties(arrow::MemoryPool* pool) {
  ::parquet::ReaderProperties properties(pool);
  properties.enable_buffered_stream();  // otherwise all of a row group's column is read at once
  properties.set_buffer_size(kStreamBytes);
  properties.set_page_checksum_verification(true);
  properties.set_thrift_container_size_limit(kMostColumns);
  properties.set_thrift_string_size_limit(kMostTextBytes);
  return properties;
}

::parquet::ArrowReaderProperties arrow_properties() {
  ::parquet::ArrowReaderProperties properties(/*use_threads=*/false);
  properties.set_pre_buffer(false);
  return properties;
}

}  // namespace

OpenedFile::OpenedFile(const base::Path& file, const Limits& given) : path(file), limits(given), pool(given) {
  Descriptor descriptor(path);
  check_ends(path, descriptor.number());
  const Place place{.file = path.string()};
  guarded(place, pool, [&] {
    const auto input = taken(place, pool, arrow::io::ReadableFile::Open(descriptor.number(), &pool));
    descriptor.release();
    reader =
        taken(place, pool,
              ::parquet::arrow::FileReader::Make(
                  &pool, ::parquet::ParquetFileReader::Open(input, properties(&pool)), arrow_properties()));
    metadata_ = pages().metadata();
    read_description();
  });
}

void OpenedFile::read_description() {
  const Place place{.file = path.string()};
  std::int64_t rows = 0;
  for (int group = 0; group < metadata_->num_row_groups(); ++group) {
    const auto description = metadata_->RowGroup(group);
    const std::int64_t count = description->num_rows();
    const Place here{.file = place.file, .row_group = group};
    if (count < 0 || count > metadata_->num_rows() - rows)
      refuse(here, base::join("at most the ", metadata_->num_rows(), " rows of the file"), base::join(count));
    if (description->num_columns() != metadata_->num_columns())
      refuse(here, base::join("the ", metadata_->num_columns(), " columns of the file"),
             base::join(description->num_columns()));
    rows_of_groups.push_back(count);
    rows += count;
  }
  if (rows != metadata_->num_rows())
    refuse(place, base::join(metadata_->num_rows(), " rows as the file says"),
           base::join(rows, " in its row groups"));
  for (const auto& field : reader->manifest().schema_fields)
    columns.push_back({.name = field.field->name(), .type = field.field->type()->ToString()});
}

}  // namespace retort::parquet
