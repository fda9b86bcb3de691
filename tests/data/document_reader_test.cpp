#include "retort/data/document_reader.h"

#include <algorithm>
#include <filesystem>

#include "data/corpus.h"
#include "retort/base/error.h"
#include "retort/data/source_files.h"

namespace retort::data {
namespace {

using base::DataError;
using base::UsageError;
using test::message_of;
using Texts = std::vector<std::string>;

class DocumentReaderTest : public test::Corpus {};

TEST_F(DocumentReaderTest, TakesAPlainFileAsOneDocumentByteForByte) {
  const std::string text = " one\r\n\n\n\ntwo \xC3\xA9\n";
  EXPECT_EQ(texts(source({write("a.txt", text)})), Texts{text});
}

TEST_F(DocumentReaderTest, LeavesOutTheByteOrderMarkOfPlainText) {
  const std::string mark = "\xEF\xBB\xBF";
  SourceOptions options = source({write("a.txt", mark + "one--" + mark + "two"),
                                  write("b.txt.gz", test::gzip(mark + "three")), write("c.txt", mark)});
  options.separator = "--";
  EXPECT_EQ(texts(options), (Texts{"one", mark + "two", "three"})) << "only a file begins with one";
}

TEST_F(DocumentReaderTest, RefusesPlainTextThatIsNotUtf8WithFileByteAndRemedy) {
  // Far behind what is looked at before a run, and across read buffers.
  const std::string far = std::string(200'000, 'x') + "--caf\xE9 --" + "tail";
  for (const auto& [name, content, byte] : {std::tuple("latin1.txt", std::string("caf\xE9"), "byte 3: "),
                                            {"far.txt", far, "byte 200005: "},
                                            {"marked.txt", std::string("\xEF\xBB\xBF\xE9"), "byte 3: "},
                                            {"cut.txt", std::string("ab\xE2\x82"), "byte 2: "}}) {
    SourceOptions options = source({write(name, content)});
    options.separator = "--";
    const auto message = message_of<DataError>([&] { documents(options); });
    EXPECT_SAYS(message, name);
    EXPECT_SAYS(message, byte);
    EXPECT_SAYS(message, "expected text in UTF-8, found the byte 0xE");
    EXPECT_SAYS(message, "iconv");
  }
}

TEST_F(DocumentReaderTest, SkipsAndCountsPlainTextThatIsNotUtf8WhenAsked) {
  SourceOptions options = source({write("a.txt", "one--caf\xE9--three"), write("b.txt", "\xE9")});
  options.separator = "--";
  options.skip_bad_lines = true;
  DocumentReader reader(options, Split::training);
  Document document;
  Texts read;
  while (reader.next(document)) read.push_back(base::join(document.number, document.text));
  EXPECT_EQ(read, (Texts{"0one", "2three"}));
  EXPECT_EQ(reader.skipped_lines(), 2);
}

TEST_F(DocumentReaderTest, RefusesASeparatorThatIsNotUtf8) {
  SourceOptions options = source({write("a.txt", "one")});
  options.separator = "\xE9";
  EXPECT_SAYS(message_of<UsageError>([&] { documents(options); }), "expected a separator in UTF-8");
}

TEST_F(DocumentReaderTest, CutsPlainTextAtTheSeparatorAndDropsBlankPieces) {
  SourceOptions options = source({write("a.txt", "\n\n\none\n\n\n\ntwo\n\n\n \n\n\nthree\n\n\n")});
  options.separator = "\n\n\n";
  EXPECT_EQ(texts(options), (Texts{"one", "\ntwo", "three"}));
}

TEST_F(DocumentReaderTest, FindsSeparatorsAcrossReadBuffers) {
  const std::string separator = "<|end|>";
  Texts expected;
  std::string content;
  base::Random random(1, 2);
  for (int i = 0; i < 300; ++i) {
    expected.push_back(base::join("d", i, std::string(random.next_below(5000), '<')));
    content += expected.back() + separator;
  }
  ASSERT_GT(content.size(), 500'000U);
  SourceOptions options = source({write("a.txt", content)});
  options.separator = separator;
  EXPECT_EQ(texts(options), expected);
}

TEST_F(DocumentReaderTest, ReadsGzipAndZstdLikeThePlainFile) {
  const Texts expected = test::numbered_texts("doc", 2000);
  const std::string lines = test::jsonl(expected);
  EXPECT_EQ(texts(source({write("a.jsonl", lines)})), expected);
  EXPECT_EQ(texts(source({write("a.jsonl.gz", test::gzip(lines))})), expected);
  EXPECT_EQ(texts(source({write("a.jsonl.zst", test::zstd(lines))})), expected);
  EXPECT_EQ(texts(source({write("b.txt.zst", test::zstd("plain"))})), Texts{"plain"});
}

TEST_F(DocumentReaderTest, ReadsJsonlWithByteOrderMarkWindowsLinesAndNoLastNewline) {
  const std::string content =
      "\xEF\xBB\xBF{\"body\": \"one\\n\\u0000\"}\r\n\r\n   \n{\"body\": \"\"}\n{\"body\":\"\xC3\xA9\"}";
  SourceOptions options = source({write("a.jsonl", content)});
  options.field = "body";
  EXPECT_EQ(texts(options), (Texts{std::string("one\n\0", 5), "", "\xC3\xA9"}));
}

TEST_F(DocumentReaderTest, SortsAGlobAndReadsNoFileTwice) {
  for (const char* name : {"b.txt", "a.txt", "C.txt", "a10.txt", "a2.txt"}) write(name, name);
  std::filesystem::create_directory(directory_ / "folder.txt");
  const std::string folder = directory_.path().string();
  EXPECT_EQ(texts(source({folder + "/*.txt"})), (Texts{"C.txt", "a.txt", "a10.txt", "a2.txt", "b.txt"}));
  EXPECT_EQ(texts(source({folder + "/b.txt", folder + "/{b,a}.txt"})), (Texts{"b.txt", "a.txt"}));
}

TEST_F(DocumentReaderTest, RefusesPatternsThatStandForVeryMany) {
  std::string braces = directory_.path().string() + "/", deep = braces;
  for (int i = 0; i < 24; ++i) braces += "{a,b}";
  for (int i = 0; i < 100; ++i) deep += "{a}";
  for (const auto& pattern : {braces, deep, braces + std::string(5000, 'a')})
    EXPECT_SAYS(message_of<DataError>([&] { documents(source({pattern}, "wiki")); }),
                "source 'wiki': expected patterns of at most 4096 bytes, 64 braces and 4096 alternatives");
}

TEST_F(DocumentReaderTest, EndsASearchThatGoesUpAndDown) {
  std::string pattern = directory_.path().string();
  for (const char* name : {"a", "b", "c"}) std::filesystem::create_directory(directory_ / name);
  for (int i = 0; i < 9; ++i) pattern += "/*/..";  // 3^9 ways
  const std::vector<std::string> patterns{pattern + "/*/x.txt"};
  EXPECT_SAYS(message_of<DataError>([&] { (void)expand_paths("wiki", patterns, 10'000); }),
              "leads to more files and folders than any source has");
  write("a/x.txt", "found");
  const std::vector<std::string> few{directory_.path().string() + "/*/../*/x.txt"};
  EXPECT_EQ(expand_paths("wiki", few, 10'000).size(), 3U);
}

TEST_F(DocumentReaderTest, NumbersDocumentsOverAllFiles) {
  const auto read =
      documents(source({write("a.jsonl", test::jsonl({"a", "b"})), write("b.jsonl", test::jsonl({"c"}))}));
  ASSERT_EQ(read.size(), 3U);
  EXPECT_EQ(read[2].number, 2);
  EXPECT_EQ(read[2].file.filename(), "b.jsonl");
}

TEST_F(DocumentReaderTest, RefusesAPathWithoutFileNamingTheSource) {
  const std::string pattern = (directory_ / "*.txt").string();
  const std::string message = message_of<DataError>([&] { documents(source({pattern}, "wiki")); });
  EXPECT_SAYS(message, "'wiki'");
  EXPECT_SAYS(message, pattern);
  EXPECT_SAYS(message_of<DataError>([&] { documents(source({directory_.path().string()})); }), "directory");
  EXPECT_SAYS(message_of<DataError>([&] { documents(source({})); }), "no path");
}

TEST_F(DocumentReaderTest, CallsAChatAChatWhateverKeyIsAskedFor) {
  const auto refusal = [&](const std::string& line, const char* field) {
    SourceOptions options = source({write("chat.jsonl", line + "\n")});
    options.field = field;
    return message_of<DataError>([&] { documents(options); });
  };
  const std::string openai = R"({"messages": [{"role": "user", "content": "Hello"}]})",
                    sharegpt = R"({"id": 1, "conversations": [{"from": "human", "value": "Hello"}]})";
  for (const char* field : {"text", "messages", "conversations"}) {
    EXPECT_SAYS(refusal(openai, field), "found a chat as \"messages\"");
    EXPECT_SAYS(refusal(sharegpt, field), "found a chat as \"conversations\"");
    EXPECT_SAYS(refusal(openai, field), "chat: true");
  }
  EXPECT_SAYS(refusal(R"({"words": [1]})", "words"), "expected a string as \"words\", found an array");
}

struct BadLine {
  std::string name;
  std::string line;
  std::string says;
  std::size_t byte;  // of the line
};

class BadLineTest : public test::Corpus, public ::testing::WithParamInterface<BadLine> {};

TEST_P(BadLineTest, IsAnErrorWithFileLineAndByteOrSkippedAndCounted) {
  const std::string first = test::jsonl({"good"});
  SourceOptions options =
      source({write("bad.jsonl", first + GetParam().line + "\n" + test::jsonl({"after"}))});
  const std::string message = message_of<DataError>([&] { documents(options); });
  EXPECT_SAYS(message, options.paths[0]);
  EXPECT_SAYS(message, "line 2,");
  EXPECT_SAYS(message, "byte " + std::to_string(first.size() + GetParam().byte) + " ");
  EXPECT_SAYS(message, GetParam().says);
  EXPECT_EQ(message.find('\n'), std::string::npos);

  options.skip_bad_lines = true;
  DocumentReader reader(options, Split::all);
  Document document;
  ASSERT_TRUE(reader.next(document));
  ASSERT_TRUE(reader.next(document));
  EXPECT_EQ(document.text, "after");
  EXPECT_EQ(document.number, 2) << "a skipped line keeps its number";
  EXPECT_FALSE(reader.next(document));
  EXPECT_EQ(reader.skipped_lines(), 1);
}

INSTANTIATE_TEST_SUITE_P(
    Jsonl, BadLineTest,
    ::testing::Values(BadLine{"Truncated", R"({"text": "cut)", "", 13},
                      BadLine{"NotAnObject", R"(["text"])", "an array", 0},
                      BadLine{"BareWord", "hello", "", 0},
                      BadLine{"MissingField", R"({"body": "x"})", "\"text\"", 0},
                      BadLine{"WrongType", R"({"text": 5})", "a number", 0},
                      BadLine{"Null", R"({"text": null})", "null", 0},
                      BadLine{"ZeroByte", std::string("{\"text\": \"a\"}\0{", 15), "zero byte", 13},
                      BadLine{"LateByteOrderMark", "\xEF\xBB\xBF{\"text\": \"a\"}", "byte-order mark", 0},
                      BadLine{"DuplicateKey", R"({"text": "a", "text": "b"})", "twice", 0},
                      BadLine{"InvalidUtf8", "{\"text\": \"a\xFF\"}", "", 11},
                      BadLine{"LoneSurrogate", R"({"text": "\ud800"})", "surrogate", 16},
                      BadLine{"TwoValues", R"({"text": "a"} {"text": "b"})", "", 14},
                      BadLine{"TooDeep", std::string(100, '[') + std::string(100, ']'), "deep", 0}),
    [](const auto& tested) { return tested.param.name; });

TEST_F(DocumentReaderTest, NeverSkipsACorruptArchive) {
  const std::string packed = test::zstd(test::jsonl(test::numbered_texts("doc", 5000)));
  std::string damaged = packed;
  damaged[packed.size() / 2] = static_cast<char>(damaged[packed.size() / 2] ^ 0x55);
  for (const std::string& content : {damaged, packed.substr(0, packed.size() - 5)}) {
    SourceOptions options = source({write("a.jsonl.zst", content)});
    options.skip_bad_lines = true;
    EXPECT_SAYS(message_of<DataError>([&] { documents(options); }), "a.jsonl.zst");
  }
}

TEST_F(DocumentReaderTest, HoldsOutByAHashOfTheTextWhateverTheOrderOfFiles) {
  const std::string a = write("a.jsonl", test::jsonl(test::numbered_texts("a", 3000)));
  const std::string b = write("b.jsonl", test::jsonl(test::numbered_texts("b", 3000)));
  SourceOptions options = source({a, b});
  options.held_out.fraction = 0.1;
  Texts held_out = texts(options, Split::held_out), training = texts(options, Split::training);
  EXPECT_NEAR(static_cast<double>(held_out.size()), 600, 100);
  EXPECT_EQ(held_out.size() + training.size(), 6000U);

  options.paths = {b, a};
  Texts reordered = texts(options, Split::held_out);
  std::sort(held_out.begin(), held_out.end());
  std::sort(training.begin(), training.end());
  std::sort(reordered.begin(), reordered.end());
  EXPECT_EQ(reordered, held_out);
  Texts both;
  std::set_intersection(held_out.begin(), held_out.end(), training.begin(), training.end(),
                        std::back_inserter(both));
  EXPECT_TRUE(both.empty());

  options.held_out.fraction = 0.05;
  const Texts fewer = texts(options, Split::held_out);
  EXPECT_LT(fewer.size(), held_out.size());
  for (const std::string& text : fewer)
    EXPECT_TRUE(std::binary_search(held_out.begin(), held_out.end(), text));
}

TEST_F(DocumentReaderTest, HoldsOutEveryNthDocument) {
  SourceOptions options = source({write("a.jsonl", test::jsonl(test::numbered_texts("a", 120)))});
  options.held_out.every = 50;
  const auto held_out = documents(options, Split::held_out);
  ASSERT_EQ(held_out.size(), 2U);
  EXPECT_EQ(held_out[0].number, 49);
  EXPECT_EQ(held_out[1].number, 99);
  EXPECT_EQ(documents(options).size(), 118U);
}

TEST_F(DocumentReaderTest, HoldsOutTheDocumentsOfFilesAndEqualTexts) {
  SourceOptions options = source({write("a.jsonl", test::jsonl({"one", "two", "three", "two"}))});
  options.held_out.paths = {write("test.jsonl", test::jsonl({"two", "four"}))};
  EXPECT_EQ(texts(options, Split::held_out), (Texts{"two", "four"}));
  EXPECT_EQ(texts(options, Split::training), (Texts{"one", "three"}));
  EXPECT_EQ(texts(options, Split::all).size(), 4U);
}

TEST_F(DocumentReaderTest, RefusesContradictingHeldOutRules) {
  SourceOptions options = source({write("a.txt", "a")});
  options.held_out.paths = {write("b.txt", "b")};
  options.held_out.every = 5;
  EXPECT_SAYS(message_of<UsageError>([&] { documents(options); }), "one rule");
  options.held_out = HeldOut();
  options.held_out.fraction = 0.6;
  EXPECT_SAYS(message_of<UsageError>([&] { documents(options); }), "0.6");
}

TEST_F(DocumentReaderTest, GoesOnFromEveryPosition) {
  SourceOptions options = source({write("a.jsonl", test::jsonl(test::numbered_texts("a", 20)) + "bad\n\n"),
                                  write("b.txt", "x--y-- --z"), write("c.jsonl", test::jsonl({"last"}))});
  options.separator = "--";
  options.skip_bad_lines = true;
  options.held_out.fraction = 0.2;
  const Texts expected = texts(options);
  DocumentReader reader(options, Split::training);
  Document document;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    DocumentReader resumed(options, Split::training);
    resumed.seek(reader.position());
    for (std::size_t j = i; j < expected.size(); ++j) {
      ASSERT_TRUE(resumed.next(document));
      ASSERT_EQ(document.text, expected[j]) << i;
    }
    EXPECT_FALSE(resumed.next(document));
    EXPECT_EQ(resumed.skipped_lines(), 1);
    ASSERT_TRUE(reader.next(document));
  }
}

TEST_F(DocumentReaderTest, RefusesAPositionBehindTheEndOfAFile) {
  DocumentReader reader(source({write("a.jsonl", test::jsonl({"one"}))}), Split::training);
  EXPECT_SAYS(message_of<DataError>([&] { reader.seek({.file = 0, .record = 5, .number = 5}); }),
              "has changed");
}

}  // namespace
}  // namespace retort::data
