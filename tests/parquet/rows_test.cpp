#include <gtest/gtest.h>

#include <fstream>

#include "retort/base/error.h"
#include "retort/parquet/table.h"
#include "support/message_of.h"
#include "support/outside_data.h"
#include "support/parquet_files.h"
#include "support/temporary_directory.h"

namespace retort::parquet {
namespace {

using base::DataError;
using base::Json;
using test::message_of;

std::vector<Json> read(Rows& rows) {
  std::vector<Json> read;
  for (Json row; rows.next(row);) read.push_back(row);
  return read;
}

std::vector<Json> lines_of(const base::Path& path) {
  std::vector<Json> rows;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) rows.push_back(Json::parse(line));
  return rows;
}

struct RandomTable {
  base::Path path;
  Json description;
  std::vector<Json> rows;
};

// Tables that tests/oracles/parquet.py drew, with pyarrow's own reading of them.
std::vector<RandomTable> random_tables() {
  std::vector<RandomTable> tables;
  for (const auto& entry : std::filesystem::directory_iterator(test::oracles("parquet"))) {
    auto path = entry.path();
    if (path.extension() != ".parquet") continue;
    const auto file = path;
    tables.push_back({file, base::parse_json(base::read_file(path.replace_extension(".json"))),
                      lines_of(path.replace_extension(".jsonl"))});
  }
  return tables;
}

// What of a row stays where only the column or the part "column.part" is asked for.
Json part_of(const Json& value, const std::string& part) {
  if (value.is_array()) {
    Json list = Json::array();
    for (const auto& one : value) list.push_back(part_of(one, part));
    return list;
  }
  return value.is_null() ? value : Json{{part, value.at(part)}};
}

Json asked_of(const Json& row, const std::vector<std::string>& names) {
  Json asked = Json::object();
  for (const auto& [key, value] : row.items())
    for (const auto& name : names) {
      if (name == key) asked[key] = value;
      if (name.starts_with(key + ".")) asked[key] = part_of(value, name.substr(key.size() + 1));
    }
  return asked;
}

TEST(Rows, AreThoseThatPyarrowReads) {
  const auto tables = random_tables();
  ASSERT_GE(tables.size(), 50U);
  for (const auto& [path, description, rows] : tables) {
    const auto table = open(path);
    EXPECT_EQ(read(*table->read({})), rows) << path;
    std::vector<std::int64_t> rows_of_groups = description.at("rows_of_groups");
    EXPECT_EQ(table->rows_of_groups(), rows_of_groups);
    EXPECT_EQ(table->rows(), static_cast<std::int64_t>(rows.size()));
  }
}

TEST(Rows, HaveTheAskedColumnsAndPartsAlone) {
  for (const auto& [path, description, rows] : random_tables()) {
    const std::vector<std::string> names = description.at("asked");
    const auto found = read(*open(path)->read(names));
    ASSERT_EQ(found.size(), rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i)
      ASSERT_EQ(found[i], asked_of(rows[i], names)) << path << " " << description.at("asked");
  }
}

TEST(Rows, HaveTheTextsThatAreReadAlone) {
  for (const auto& [path, description, rows] : random_tables()) {
    const auto texts = open(path)->texts("text");
    for (const auto& row : rows) {
      ASSERT_TRUE(texts->next());
      const auto text = texts->text();
      EXPECT_EQ(text ? Json(std::string(*text)) : Json(nullptr), row.at("text")) << texts->place();
    }
    EXPECT_FALSE(texts->next());
  }
}

TEST(Rows, AreSkippedAsTheyWouldBeRead) {
  for (const auto& [path, description, rows] : random_tables())
    for (const std::int64_t skipped : {1, 8, 9, 95, 977, 1500}) {
      const auto reader = open(path)->read({});
      const std::int64_t size = static_cast<std::int64_t>(rows.size());
      Json row;
      if (reader->next(row)) {
        EXPECT_EQ(reader->skip(skipped), std::min(skipped, size - 1));
      }
      const bool more = reader->next(row);
      ASSERT_EQ(more, size > 1 + skipped) << path << " " << skipped;
      if (more) {
        EXPECT_EQ(row, rows[static_cast<std::size_t>(1 + skipped)]) << reader->place();
      }
    }
}

TEST(Rows, SayTheTypesOfTheirColumns) {
  for (const auto& [path, description, rows] : random_tables()) {
    Json columns = Json::array();
    const auto table = open(path);
    for (const auto& column : table->columns()) columns.push_back(Json::array({column.name, column.type}));
    EXPECT_EQ(columns, description.at("columns"));
  }
}

class RowsOfFile : public testing::Test {
 protected:
  test::TemporaryDirectory folder_;
};

TEST_F(RowsOfFile, KeepTheOrderOfTheFileWhateverWasAskedFirst) {
  const auto path = folder_ / "nested.parquet";
  test::write_nested_parquet(path, 3, 2);
  const auto rows = open(path)->read({"turns.content", "answer.value", "number"});
  Json row;
  ASSERT_TRUE(rows->next(row));
  EXPECT_EQ(
      row.dump(),
      R"({"number":0,"answer":{"value":"answer 0"},"turns":[{"content":"content 0"},{"content":"content 1"}]})");
}

TEST_F(RowsOfFile, RefuseTextThatIsNotUtf8WithItsPlace) {
  const auto path = folder_ / "data.parquet";
  test::write_parquet(path, {"good", "good", "caf\xE9"}, {.rows_of_group = 2});
  const auto rows = open(path)->read({});
  rows->skip(2);
  Json row;
  const auto message = message_of<DataError>([&] { rows->next(row); });
  EXPECT_SAYS(message,
              "data.parquet, row group 1, row 0, column \"text\": expected text in UTF-8, found other bytes "
              "in \"caf\\xe9\"");
}

TEST_F(RowsOfFile, RefuseATypeThatJsonHasNoWordForByItsName) {
  const auto path = folder_ / "data.parquet";
  test::write_parquet(path, {"bytes"}, {.column = "image", .as_text = false});
  const auto rows = open(path)->read({});
  Json row;
  const auto message = message_of<DataError>([&] { rows->next(row); });
  EXPECT_SAYS(message,
              "row group 0, column \"image\": expected texts, numbers, truth values, times, lists or "
              "structs, found binary");
}

TEST_F(RowsOfFile, OfNoRowGroupsAreNone) {
  const auto path = folder_ / "nested.parquet";
  test::write_nested_parquet(path, 0, 2);
  Json row;
  EXPECT_FALSE(open(path)->read({})->next(row));
  EXPECT_EQ(open(path)->read({"number"})->skip(5), 0);
  EXPECT_EQ(open(path)->columns().size(), 3U);
}

}  // namespace
}  // namespace retort::parquet
