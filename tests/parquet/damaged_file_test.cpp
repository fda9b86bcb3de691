// Files that are cut, changed or lie about themselves: each is refused in a sentence, and none takes the
// memory that it claims.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <fstream>

#include "retort/base/error.h"
#include "retort/parquet/table.h"
#include "support/message_of.h"
#include "support/parquet_files.h"
#include "support/temporary_directory.h"

namespace retort::parquet {
namespace {

using base::DataError;
using test::message_of;

std::string number_of(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}

// A positive number in Thrift's compact protocol.
std::string thrift(std::uint64_t value) {
  return number_of(value << 1);
}

std::string little_endian(std::uint32_t value) {
  return {static_cast<char>(value), static_cast<char>(value >> 8), static_cast<char>(value >> 16),
          static_cast<char>(value >> 24)};
}

const std::string kEnd(1, '\0');

// A group of the schema with so many children, and a leaf of byte arrays.
std::string group(std::size_t children) {
  return "\x35" + std::string(1, '\0') + "\x18\x01g\x15" + thrift(children) + kEnd;
}
const std::string kLeaf =
    "\x15\x0C\x25\x02\x18\x01"
    "a" +
    kEnd;

// A file of nothing but what it says of itself.  `row_groups`: the list as it stands in the file.
std::string described_file(const std::string& schema, std::size_t elements, std::uint64_t rows,
                           const std::string& row_groups) {
  const std::string footer =
      "\x15\x02\x19\xFC" + number_of(elements) + schema + "\x16" + thrift(rows) + "\x19" + row_groups + kEnd;
  return "PAR1" + footer + little_endian(static_cast<std::uint32_t>(footer.size())) + "PAR1";
}

const std::string kNoGroups = "\x0C";

std::string group_of_rows(std::uint64_t rows) {
  return "\x1C\x19\x0C\x16" + thrift(0) + "\x16" + thrift(rows) + kEnd;
}

class DamagedFile : public testing::Test {
 protected:
  base::Path written(std::string_view content) {
    std::ofstream(path_, std::ios::binary)
        .write(content.data(), static_cast<std::streamsize>(content.size()));
    return path_;
  }

  std::string good(const test::ParquetSettings& settings = {}) {
    std::vector<std::optional<std::string>> texts;
    for (int i = 0; i < 40; ++i)
      texts.push_back(i % 5 ? std::optional("text " + std::to_string(i)) : std::nullopt);
    test::write_parquet(path_, texts, settings);
    return base::read_file(path_);
  }

  // Reads all in both ways.
  std::size_t read_all(const Limits& limits = {}) {
    const auto table = open(path_, limits);
    std::size_t read = 0;
    for (const auto texts = table->texts("text"); texts->next();) ++read;
    const auto rows = table->read({});
    for (base::Json row; rows->next(row);) ++read;
    return read;
  }

  std::string refused(std::string_view content) {
    written(content);
    const auto message = message_of<DataError>([&] { read_all(); });
    EXPECT_SAYS(message, path_.string());
    return message;
  }

  test::TemporaryDirectory folder_;
  base::Path path_ = folder_ / "data.parquet";
};

TEST_F(DamagedFile, OfEveryLengthThatIsCutIsRefused) {
  const std::string content = good();
  for (std::size_t size = 0; size < content.size(); ++size) {
    const auto message = refused(content.substr(0, size));
    EXPECT_SAYS(message, "expected a Parquet file");
  }
  EXPECT_SAYS(refused(content.substr(0, 100)), "found one whose end is missing; fetch the file again.");
  EXPECT_SAYS(refused(content.substr(0, 9)), "found one of 9 bytes");
}

TEST_F(DamagedFile, ThatIsNoneIsRefused) {
  EXPECT_SAYS(refused("id,text\n1,one\n"), "expected a Parquet file, which begins with PAR1");
  std::string content = good();
  EXPECT_SAYS(refused("PARE" + content.substr(4)), "found an encrypted one; write it without encryption.");
  EXPECT_SAYS(refused(content.substr(0, content.size() - 4) + "PARE"), "found an encrypted one");
}

TEST_F(DamagedFile, WhoseDescriptionWouldLieOutsideIsRefused) {
  const std::string content = good();
  for (const std::uint32_t length :
       {0x7FFFFFFFU, 0xFFFFFFFFU, static_cast<std::uint32_t>(content.size() - 11)}) {
    auto lying = content;
    lying.replace(content.size() - 8, 4, little_endian(length));
    EXPECT_SAYS(refused(lying),
                base::join("expected a description within the file, found one of ", length, " bytes"));
  }
  auto short_one = content;
  short_one.replace(content.size() - 8, 4, little_endian(20));
  EXPECT_SAYS(refused(short_one), "expected a Parquet file that is whole, found damage (");
}

TEST_F(DamagedFile, WithAPageThatItsChecksumDoesNotFitIsRefusedWithRowGroupAndColumn) {
  std::string content = good({.codec = "uncompressed", .rows_of_group = 10, .checksums = true});
  const auto at = content.find("text 23");  // of the third row group
  ASSERT_NE(at, content.npos);
  content[at] = 'T';
  const auto message = refused(content);
  EXPECT_SAYS(message, "row group 2, column \"text\": expected a Parquet file that is whole, found damage (");
  EXPECT_SAYS(message, "CRC");
}

TEST_F(DamagedFile, WithAnyByteChangedIsReadOrRefusedInASentence) {
  std::size_t refusals = 0;
  const std::string content = good({.codec = "zstd", .rows_of_group = 20});
  for (std::size_t byte = 0; byte < content.size(); ++byte)
    for (const int change : {0x01, 0xFF}) {
      auto changed = content;
      changed[byte] = static_cast<char>(changed[byte] ^ change);
      written(changed);
      try {
        read_all({.memory_bytes = 1 << 26, .value_bytes = 1 << 24});
      } catch (const base::Error& error) {
        ++refusals;
        EXPECT_NE(error.code(), base::ExitCode::internal) << error.what();
      }
    }
  EXPECT_GT(refusals, 300U);
}

TEST_F(DamagedFile, WithAPageOfTwoGigabytesIsRefusedBeforeItTakesThem) {
  test::write_parquet(path_, {std::string(500, 'x')}, {.codec = "uncompressed"});
  std::string content = base::read_file(path_);
  // A data page of one value in plain encoding, by what its header says.
  const std::string sizes = "\x15" + thrift(0x7FFFFFF0) + "\x15" + thrift(0x7FFFFFF0);
  const std::string header = "\x15" + thrift(0) + sizes + "\x2C\x15" + thrift(1) + "\x15" + thrift(0) +
                             "\x15" + thrift(3) + "\x15" + thrift(3) + kEnd + kEnd;
  content.replace(4, header.size(), header);
  struct rusage before {
  }, after{};
  ::getrusage(RUSAGE_SELF, &before);
  const auto message = refused(content);
  ::getrusage(RUSAGE_SELF, &after);
  EXPECT_SAYS(message,
              "row group 0, column \"text\": expected pages and rows that fit into memory, found a page or a "
              "value of 2147483");
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 100'000) << "kilobytes";
}

TEST_F(DamagedFile, OfAMillionColumnsIsRefused) {
  constexpr std::size_t kColumns = 1'000'000;
  std::string schema = group(kColumns);
  for (std::size_t i = 0; i < kColumns; ++i) schema += kLeaf;
  EXPECT_SAYS(refused(described_file(schema, kColumns + 1, 0, kNoGroups)), "found damage (");
}

TEST_F(DamagedFile, OfAFewColumnsThatIsMadeInTheSameWayIsTaken) {
  written(described_file(group(2) + kLeaf + kLeaf, 3, 0, kNoGroups));
  EXPECT_EQ(open(path_)->columns().size(), 2U);
}

TEST_F(DamagedFile, OfGroupsWithinGroupsIsRefused) {
  constexpr std::size_t kDepth = 50'000;
  std::string schema;
  for (std::size_t i = 0; i < kDepth; ++i) schema += group(1);
  EXPECT_SAYS(refused(described_file(schema + kLeaf, kDepth + 1, 0, kNoGroups)), "found damage (");
}

TEST_F(DamagedFile, WithoutColumnsHasNoText) {
  const auto message = refused(described_file(group(0), 1, 0, kNoGroups));
  EXPECT_SAYS(message, "expected a column \"text\", found none");
}

TEST_F(DamagedFile, WhoseRowsAreCountedInTwoWaysIsRefused) {
  EXPECT_SAYS(refused(described_file(group(0), 1, 5, group_of_rows(3))),
              "expected 5 rows as the file says, found 3");
  EXPECT_SAYS(refused(described_file(group(0), 1, 5, group_of_rows(7))),
              "row group 0: expected at most the 5 rows of the file, found 7");
  EXPECT_SAYS(refused(described_file(group(1) + kLeaf, 2, 5, group_of_rows(5))),
              "row group 0: expected the 1 columns of the file, found 0");
}

TEST_F(DamagedFile, IsNoPipeAndNoDirectory) {
  const auto message = message_of<DataError>([&] { open(folder_.path()); });
  EXPECT_SAYS(message, "is a directory, expected a file");
  EXPECT_SAYS(message_of<base::StorageError>([&] { open(folder_ / "missing.parquet"); }),
              "missing.parquet: cannot be opened");
}

}  // namespace
}  // namespace retort::parquet
