#include <gtest/gtest.h>

#include "retort/base/error.h"
#include "retort/parquet/table.h"
#include "support/message_of.h"
#include "support/parquet_files.h"
#include "support/temporary_directory.h"

namespace retort::parquet {
namespace {

using base::DataError;
using test::message_of;
using Column = std::vector<std::optional<std::string>>;

Column numbered(int rows) {
  Column texts;
  for (int i = 0; i < rows; ++i)
    texts.push_back(
        i % 7 == 3 ? std::nullopt
                   : std::optional(std::string(static_cast<std::size_t>(i % 90), 'x') + std::to_string(i)));
  return texts;
}

Column read(Texts& texts) {
  Column read;
  while (texts.next())
    read.push_back(texts.text() ? std::optional(std::string(*texts.text())) : std::nullopt);
  return read;
}

class TextsTest : public testing::Test {
 protected:
  base::Path file(const Column& texts, const test::ParquetSettings& settings = {}) {
    const auto path = folder_ / "data.parquet";
    test::write_parquet(path, texts, settings);
    return path;
  }
  test::TemporaryDirectory folder_;
};

TEST_F(TextsTest, AreThoseThatWereWrittenByEveryCodec) {
  const Column texts = numbered(1000);
  for (const char* codec : {"uncompressed", "snappy", "gzip", "brotli", "zstd", "lz4_raw"})
    for (const bool dictionary : {false, true}) {
      const auto path = file(texts, {.codec = codec,
                                     .rows_of_group = 300,
                                     .page_bytes = 2000,
                                     .dictionary = dictionary,
                                     .checksums = true});
      EXPECT_EQ(read(*open(path)->texts("text")), texts) << codec;
    }
}

TEST_F(TextsTest, SkipsAsManyRowsAsItWouldRead) {
  const Column texts = numbered(100);
  const auto table = open(file(texts, {.rows_of_group = 30, .page_bytes = 200}));
  for (std::int64_t begin = 0; begin <= 100; begin += 7)
    for (const std::int64_t skipped : {0, 1, 5, 29, 30, 31, 65, 99, 200}) {
      const auto column = table->texts("text");
      for (std::int64_t i = 0; i < begin; ++i) ASSERT_TRUE(column->next());
      EXPECT_EQ(column->skip(skipped), std::min(skipped, 100 - begin));
      const auto left = static_cast<std::ptrdiff_t>(std::min<std::int64_t>(begin + skipped, 100));
      EXPECT_EQ(read(*column), Column(texts.begin() + left, texts.end())) << begin << " and " << skipped;
    }
}

TEST_F(TextsTest, SaysWhereItStands) {
  const auto path = file(numbered(10), {.rows_of_group = 4});
  const auto texts = open(path)->texts("text");
  texts->skip(5);
  ASSERT_TRUE(texts->next());
  EXPECT_EQ(texts->place(), path.string() + ", row group 1, row 1, column \"text\"");
}

TEST_F(TextsTest, OfNoRowsAreNone) {
  for (const std::int64_t rows_of_group : {1, 1000}) {
    const auto table = open(file({}, {.rows_of_group = rows_of_group}));
    EXPECT_EQ(table->rows(), 0);
    EXPECT_FALSE(table->texts("text")->next());
    EXPECT_EQ(table->texts("text")->skip(3), 0);
  }
}

TEST_F(TextsTest, KeepTheirBytesWhetherOrNotTheyAreUtf8) {
  EXPECT_EQ(read(*open(file({"caf\xE9"}))->texts("text")), Column{"caf\xE9"});
}

TEST_F(TextsTest, AreReadOutOfStructsAndNotOutOfLists) {
  const auto path = folder_ / "nested.parquet";
  test::write_nested_parquet(path, 5, 2);
  const auto table = open(path);
  EXPECT_EQ(read(*table->texts("answer.value")),
            (Column{"answer 0", "answer 1", "answer 2", "answer 3", "answer 4"}));
  const auto of_list = message_of<DataError>([&] { table->texts("turns.content"); });
  EXPECT_SAYS(of_list,
              "nested.parquet: expected text as the column \"turns.content\", found a list of string");
  const auto of_struct = message_of<DataError>([&] { table->texts("answer"); });
  EXPECT_SAYS(of_struct, "found struct<value: string, score: float>");
  const auto of_number = message_of<DataError>([&] { table->texts("number"); });
  EXPECT_SAYS(of_number, "found int64; name a column of strings.");
}

TEST_F(TextsTest, OfAMissingColumnAreRefusedWithTheNearestAndAll) {
  const auto path = folder_ / "nested.parquet";
  test::write_nested_parquet(path, 5, 2);
  const auto table = open(path);
  const auto top = message_of<DataError>([&] { table->texts("nubmer"); });
  EXPECT_SAYS(
      top, "expected a column \"nubmer\", found \"number\", \"answer\", \"turns\"; did you mean \"number\"?");
  const auto part = message_of<DataError>([&] { table->texts("answer.vlaue"); });
  EXPECT_SAYS(part, "found \"value\", \"score\"; did you mean \"value\"?");
  const auto far = message_of<DataError>([&] { table->texts("something else"); });
  EXPECT_SAYS(far, "; name one of these.");
}

TEST_F(TextsTest, AreNotBytesThatAreNoTextByWhatTheFileSays) {
  const auto path = file({"text"}, {.as_text = false});
  const auto message = message_of<DataError>([&] { open(path)->texts("text"); });
  EXPECT_SAYS(message, "expected text as the column \"text\", found binary");
}

TEST_F(TextsTest, LongerThanALimitAreRefused) {
  const Limits limits{.memory_bytes = 1 << 24, .value_bytes = 1000};
  const Column texts{std::string(1000, 'x'), std::string(1001, 'y')};
  const auto column = open(file(texts), limits)->texts("text");
  ASSERT_TRUE(column->next());
  const auto message = message_of<DataError>([&] { column->next(); });
  EXPECT_SAYS(message,
              "row group 0, row 1, column \"text\": expected texts of at most 1000 bytes, found one of 1001");
}

TEST_F(TextsTest, TakeNoMoreMemoryThanIsGranted) {
  const Column texts{std::string(8 << 20, 'x')};
  const auto path = file(texts, {.codec = "zstd"});
  EXPECT_LT(std::filesystem::file_size(path), 10'000U);
  const auto by_page =
      message_of<DataError>([&] { open(path, {.value_bytes = 1 << 20})->texts("text")->next(); });
  EXPECT_SAYS(by_page,
              "row group 0, column \"text\": expected pages and rows that fit into memory, found a page or a "
              "value of 8388672 bytes where at most 1048576 are read");
  const auto by_all =
      message_of<DataError>([&] { open(path, {.memory_bytes = 1 << 22})->texts("text")->next(); });
  EXPECT_SAYS(by_all, "rows that take more than 4194304 bytes of memory at a time");
}

TEST_F(TextsTest, OutliveTheTableThatGaveThem) {
  auto table = open(file({"one", "two"}));
  const auto texts = table->texts("text");
  table.reset();
  EXPECT_EQ(read(*texts), (Column{"one", "two"}));
}

}  // namespace
}  // namespace retort::parquet
