// A file is what its first bytes say: what is not text is refused by name, and odd text is not.
#include "retort/data/file_form.h"

#include "data/corpus.h"
#include "retort/base/error.h"
#include "retort/io/text_file.h"

namespace retort::data {
namespace {

using namespace std::string_literals;
using Texts = std::vector<std::string>;

class FileFormTest : public test::Corpus {
 protected:
  std::string refusal(const std::string& name, const std::string& content,
                      const std::string& separator = "") const {
    auto options = source({write(name, content)});
    options.separator = separator;
    const auto said = test::message_of<base::DataError>([&] { texts(options); });
    EXPECT_EQ(said, test::message_of<base::DataError>([&] { check_files(options); })) << "before a run";
    EXPECT_SAYS(said, name);
    return said;
  }
};

struct Binary {
  const char* name;
  std::string content;
  const char* found;
};

TEST_F(FileFormTest, RefusesWhatIsNoTextByName) {
  const std::string more(300, 'x');
  const Binary cases[] = {
      {"a.feather", "ARROW1\0\0"s + more, "an Arrow file"},
      {"a.docx", "PK\x03\x04" + more, "a zip archive"},
      {"a.pdf", "%PDF-1.7\n" + more, "a PDF"},
      {"a.png", "\x89PNG\r\n\x1A\n" + more, "a PNG image"},
      {"a.tar", "name.txt" + std::string(249, '\0') + "ustar" + more, "a tar archive"},
      {"a.txt.xz", "\xFD"s + "7zXZ\0"s + more, "an xz file"},
      {"a.bz2", "BZh91AY&SY" + more, "a bzip2 file"},
      {"a.lz4", "\x04\x22\x4D\x18" + more, "an lz4 file"},
      {"a.gguf", "GGUF\x03" + more, "a GGUF model"},
      {"a.pkl", "\x80\x04\x95" + more, "a pickle"},
      {"a.db", "SQLite format 3\0"s + more, "an SQLite database"},
      {"a.h5", "\x89HDF\r\n\x1A\n" + more, "an HDF5 file"},
      {"a.safetensors", "\x40\0\0\0\0\0\0\0{\"w\":"s + more, "a safetensors file"},
      {"utf16.txt", "\xFF\xFEh\0i\0"s, "text in UTF-16"},
      {"utf16.jsonl", "\xFE\xFF\0h\0i"s, "text in UTF-16"},
      {"a.bin", "some words\0more"s, "a NUL byte at byte 10"},
  };
  for (const auto& one : cases) {
    SCOPED_TRACE(one.name);
    const auto said = refusal(one.name, one.content, "\n\n");
    EXPECT_SAYS(said, one.found);
    EXPECT_SAYS(said, "convert it to UTF-8 text (.txt) or JSON lines (.jsonl)");
  }
  EXPECT_SAYS(refusal("a.tar.gz", test::gzip(cases[4].content)), "a tar archive");
  EXPECT_SAYS(refusal("twice.zst", test::zstd(test::gzip("text"))), "a gzip file");
}

TEST_F(FileFormTest, RefusesWhatGitLfsLeavesInThePlaceOfAText) {
  const auto said = refusal("a.txt", "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n");
  EXPECT_SAYS(said, "found a Git LFS pointer; fetch the file itself with git lfs pull");
}

TEST_F(FileFormTest, KnowsACompressedFileWithoutItsSuffix) {
  EXPECT_EQ(texts(source({write("a.txt", test::gzip("one"))})), Texts{"one"});
  EXPECT_EQ(texts(source({write("b", test::zstd("two"))})), Texts{"two"});
  EXPECT_EQ(texts(source({write("c.jsonl", test::gzip(test::jsonl({"three"})))})), Texts{"three"});
}

TEST_F(FileFormTest, ReadsJsonLinesWhateverTheirName) {
  const Texts expected{"one", "two"};
  EXPECT_EQ(texts(source({write("a.json", test::jsonl(expected))})), expected);
  EXPECT_EQ(texts(source({write("a.json.gz", test::gzip("\xEF\xBB\xBF" + test::jsonl(expected)))})),
            expected);
  EXPECT_EQ(texts(source({write("a.txt", "\n" + test::jsonl(expected))})), expected);
  EXPECT_EQ(texts(source({write("one.json", test::jsonl({"one"}))})), Texts{"one"});
  const Texts longer{std::string(300'000, 'x'), std::string(300'000, 'y')};
  EXPECT_EQ(texts(source({write("long", test::jsonl(longer))})), longer);
}

TEST_F(FileFormTest, RefusesOneJsonDocument) {
  const std::string array = "[\n  {\"text\": \"one\"},\n  {\"text\": \"two\"}\n]\n",
                    object = "{\n  \"text\": \"one\",\n  \"more\": [1, 2]\n}\n";
  EXPECT_SAYS(refusal("a.json", array), "one JSON array");
  EXPECT_SAYS(refusal("b.json", object), "one JSON object");
  EXPECT_SAYS(refusal("c.json", "[1, 2]", "\n\n"), "name the file .jsonl");
  EXPECT_SAYS(refusal("d.txt", array), "one JSON array");
  EXPECT_SAYS(refusal("e", object), "one JSON object");
  EXPECT_SAYS(refusal("f.json", "words"), "text that is no JSON");
}

TEST_F(FileFormTest, TakesOddTextAsItIs) {
  for (const std::string& text :
       {"\x01\x1B[31mred\x1B[0m\x7F"s, "{braces} and [brackets]"s, "[1] A note."s, "{\"quoted\"} words"s,
        "PAR for the course"s, "caf\xC3\xA9"s, std::string(200'000, 'x') + "\0"s,
        "\xE2\x82\xAC \xF0\x9F\x98\x80"s, "{\"text\": 1}\nwords that follow an object"s}) {
    auto options = source({write("a.txt", text)});
    options.separator = "\n\n\n";
    EXPECT_EQ(texts(options), Texts{text});
    EXPECT_NO_THROW(check_files(options));
  }
}

TEST_F(FileFormTest, LooksForOtherEncodingsBeforeTheRun) {
  const auto refused = [&](const std::string& content) {
    return test::message_of<base::DataError>([&] { check_files(source({write("a.txt", content)})); });
  };
  EXPECT_SAYS(refused("caf\xE9 au lait"), "byte 3: expected text in UTF-8, found the byte 0xE9");
  EXPECT_SAYS(refused("\xFF\xFEh\0i\0"s), "text in UTF-16");
  // A character that is cut where one stops to look.
  const std::string cut = std::string(io::kTextProbeBytes - 1, 'x') + "\xC3\xA9";
  EXPECT_NO_THROW(check_files(source({write("b.txt", cut)})));
  auto options = source({write("c.txt", "caf\xE9")});
  options.skip_bad_lines = true;
  EXPECT_NO_THROW(check_files(options));
}

}  // namespace
}  // namespace retort::data
