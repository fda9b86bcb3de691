// Parquet as a source of text: documents are the rows of a column.
#include "data/corpus.h"
#include "retort/base/error.h"
#include "retort/data/file_form.h"
#include "retort/data/overlap.h"
#include "support/parquet_files.h"

namespace retort::data {
namespace {

using base::DataError;
using test::message_of;
using Rows = std::vector<std::optional<std::string>>;
using Texts = std::vector<std::string>;

class ParquetSource : public test::Corpus {
 protected:
  std::string table(const std::string& name, const Texts& texts,
                    const test::ParquetSettings& settings = {}) const {
    return rows(name, Rows(texts.begin(), texts.end()), settings);
  }
  std::string rows(const std::string& name, const Rows& texts,
                   const test::ParquetSettings& settings = {}) const {
    test::write_parquet(directory_ / name, texts, settings);
    return (directory_ / name).string();
  }
};

TEST_F(ParquetSource, HasTheDocumentsThatJsonLinesWouldHave) {
  const Texts expected = test::numbered_texts("a", 300);
  for (const char* codec : {"uncompressed", "snappy", "zstd"}) {
    const auto path = table("a.parquet", expected, {.codec = codec, .rows_of_group = 70, .page_bytes = 500});
    EXPECT_EQ(texts(source({path})), expected);
  }
  const auto lines = write("a.jsonl", test::jsonl(expected));
  for (const Split split : {Split::training, Split::held_out}) {
    auto of_table = source({table("b.parquet", expected)}), of_lines = source({lines});
    of_table.held_out.fraction = of_lines.held_out.fraction = 0.3;
    EXPECT_EQ(texts(of_table, split), texts(of_lines, split));
    of_table.held_out.every = of_lines.held_out.every = 7;
    EXPECT_EQ(texts(of_table, split), texts(of_lines, split));
  }
}

TEST_F(ParquetSource, IsKnownByItsFirstBytesAndStandsBesideOtherFiles) {
  table("a.parquet", {"one"});
  std::filesystem::rename(directory_ / "a.parquet", directory_ / "b");
  table("c.parquet", {"two", ""});
  write("d.jsonl", test::jsonl({"three"}));
  EXPECT_EQ(texts(source({(directory_ / "*").string()})), (Texts{"one", "two", "", "three"}));
}

TEST_F(ParquetSource, TakesTheColumnOrThePartThatTheFieldNames) {
  test::write_nested_parquet(directory_ / "nested.parquet", 3, 2);
  auto options = source({(directory_ / "nested.parquet").string()});
  options.field = "answer.value";
  EXPECT_EQ(texts(options), (Texts{"answer 0", "answer 1", "answer 2"}));
  options.field = "answer.valeu";
  const auto message = message_of<DataError>([&] { texts(options); });
  EXPECT_SAYS(message, "did you mean \"value\"?");
  EXPECT_EQ(message, message_of<DataError>([&] { check_files(options); })) << "before a run";
}

TEST_F(ParquetSource, ResumesAtEveryDocument) {
  const auto options = source(
      {table("a.parquet", test::numbered_texts("a", 23), {.rows_of_group = 5, .page_bytes = 20}),
       table("b.parquet", {}), table("c.parquet", test::numbered_texts("c", 4), {.rows_of_group = 1})});
  const auto expected = texts(options);
  DocumentReader reader(options, Split::training);
  Document document;
  for (std::size_t read = 0; read <= expected.size(); ++read) {
    DocumentReader resumed(options, Split::training);
    resumed.seek(reader.position());
    Texts rest;
    while (resumed.next(document)) rest.push_back(document.text);
    EXPECT_EQ(rest, Texts(expected.begin() + static_cast<std::ptrdiff_t>(read), expected.end()));
    reader.next(document);
  }
  EXPECT_SAYS(message_of<DataError>([&] { reader.seek({.file = 0, .record = 24, .number = 24}); }),
              "expected at least 24 records");
}

TEST_F(ParquetSource, RefusesARowWithoutTextByItsPlace) {
  auto options = source({rows("a.parquet", {"one", "two", std::nullopt, "four"}, {.rows_of_group = 2})});
  const auto null = message_of<DataError>([&] { texts(options); });
  EXPECT_SAYS(null,
              "a.parquet, row group 1, row 0, column \"text\": expected text, found null; correct the row");
  options = source({rows("b.parquet", {"one", "caf\xE9"})});
  const auto latin = message_of<DataError>([&] { texts(options); });
  EXPECT_SAYS(latin, "row 1, column \"text\", byte 3 of the text: expected UTF-8, found the byte 0xE9");
}

TEST_F(ParquetSource, SkipsAndCountsSuchRowsWhenAsked) {
  auto options = source({rows("a.parquet", {"one", "caf\xE9", std::nullopt, "four"}, {.rows_of_group = 2})});
  options.skip_bad_lines = true;
  DocumentReader reader(options, Split::training);
  Document document;
  Texts read;
  while (reader.next(document)) read.push_back(base::join(document.number, document.text));
  EXPECT_EQ(read, (Texts{"0one", "3four"}));
  EXPECT_EQ(reader.skipped_lines(), 2);
}

TEST_F(ParquetSource, NamesAChatThatStandsInPlaceOfText) {
  test::write_nested_parquet(directory_ / "nested.parquet", 3, 2);
  const auto options = source({(directory_ / "nested.parquet").string()});
  EXPECT_SAYS(message_of<DataError>([&] { texts(options); }),
              "expected text as \"text\", found a chat as \"turns\"; a source with chat: true");
}

TEST_F(ParquetSource, ThatIsDamagedIsRefusedBeforeARun) {
  const auto refused = [&](const std::string& name, const std::string& content) {
    const auto options = source({write(name, content)});
    const auto said = message_of<DataError>([&] { check_files(options); });
    EXPECT_EQ(said, message_of<DataError>([&] { texts(options); }));
    EXPECT_SAYS(said, name);
    return said;
  };
  const auto whole = base::read_file(table("whole.parquet", {"one", "two"}));
  EXPECT_SAYS(refused("cut.parquet", whole.substr(0, whole.size() / 2)), "found one whose end is missing");
  EXPECT_SAYS(refused("rows.jsonl", "PAR1\x15\x04 and more"), "found one whose end is missing");
  EXPECT_SAYS(refused("named.parquet", "plain words"), "expected a Parquet file, which begins with PAR1");
  EXPECT_SAYS(refused("lfs.parquet", "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n"),
              "found a Git LFS pointer");
  EXPECT_SAYS(refused("a.parquet.gz", test::gzip(whole)), "found a Parquet file; convert it");
}

TEST_F(ParquetSource, OverlapsWithTheSameTextInAnotherForm) {
  const std::string same =
      "A text of the held-out part that is long enough to be found again in another file. ";
  Texts learned;
  for (int i = 0; i < 5; ++i)
    learned.push_back(same + "Number " + std::to_string(i) + " of them, with an ending.");
  auto used = source({table("a.parquet", learned)}, "used");
  auto measured = source({write("b.jsonl", test::jsonl({learned[3]}))}, "measured");
  measured.held_out.paths = measured.paths;
  const auto found = overlaps({used}, Split::training, {measured});
  ASSERT_EQ(found.found.size(), 1U);
  EXPECT_EQ(found.found[0].documents, 1);
}

}  // namespace
}  // namespace retort::data
