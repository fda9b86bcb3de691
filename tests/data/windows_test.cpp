#include "retort/data/windows.h"

#include "data/corpus.h"
#include "retort/base/error.h"
#include "retort/base/hash.h"

namespace retort::data {
namespace {

using base::DataError;
using test::encode_bytes;
using test::kSpecial;
using test::message_of;
using Ids = std::vector<std::int32_t>;

class WindowsTest : public test::Corpus {
 protected:
  static std::vector<Sequence> windows(WindowReader& reader) {
    std::vector<Sequence> all;
    for (Sequence window; reader.next(window);) all.push_back(window);
    return all;
  }
};

TEST_F(WindowsTest, MakeEveryTokenOfTheTextATargetOnce) {
  const auto written = test::numbered_texts("doc", 50);
  const SourceOptions options = source({write("a.jsonl", test::jsonl(written))});
  Ids texts;
  std::int64_t bytes = 0;
  for (const std::string& text : written) {
    for (const std::int32_t id : encode_bytes(text)) texts.push_back(id);
    bytes += static_cast<std::int64_t>(text.size());
  }
  for (const std::int64_t context : {2, 7, 64, 100'000}) {
    WindowReader reader(options, Split::training, {.context = context}, encode_bytes, kSpecial);
    Ids targets;
    for (const Sequence& window : windows(reader)) {
      ASSERT_LE(static_cast<std::int64_t>(window.ids.size()), context);
      EXPECT_EQ(window.starts, Ids{0});
      EXPECT_EQ(window.targets.back(), kNoTarget);
      for (std::size_t i = 0; i + 1 < window.ids.size(); ++i) {
        const bool is_text = window.ids[i + 1] != kSpecial.bos;
        ASSERT_EQ(window.targets[i], is_text ? window.ids[i + 1] : kNoTarget);
        if (is_text) targets.push_back(window.targets[i]);
      }
    }
    EXPECT_EQ(targets, texts) << context;
    EXPECT_EQ(reader.bytes(), bytes);
    EXPECT_EQ(reader.tokens(), static_cast<std::int64_t>(texts.size() + written.size()));
    EXPECT_EQ(reader.documents().size(), 50U);
  }
}

TEST_F(WindowsTest, SayWhichDocumentEachTargetBelongsTo) {
  const std::vector<std::string> written = {"abc", "", "d", "efghijkl", "mn"};
  const SourceOptions options = source({write("a.jsonl", test::jsonl(written))});
  std::vector<std::int32_t> owners;  // of each token of the joined text; the empty document is none
  for (const auto& [document, length] : {std::pair(0, 4), {1, 2}, {2, 9}, {3, 3}})
    owners.insert(owners.end(), static_cast<std::size_t>(length), document);
  for (const std::int64_t context : {2, 3, 7, 100})
    for (const std::int64_t overlap : {0, 1}) {
      WindowReader reader(options, Split::all, {.context = context, .overlap_tokens = overlap}, encode_bytes,
                          kSpecial);
      std::size_t place = 0;
      for (Sequence window; reader.next(window);
           place += window.ids.size() - static_cast<std::size_t>(overlap)) {
        const auto documents = reader.target_documents(window);
        ASSERT_EQ(documents.size(), window.ids.size());
        for (std::size_t i = 0; i + 1 < documents.size(); ++i)
          EXPECT_EQ(documents[i], window.targets[i] == kNoTarget ? 0 : owners[place + i + 1])
              << "context " << context << ", token " << place + i;
      }
      ASSERT_EQ(reader.documents().size(), 4U);
      EXPECT_EQ(reader.documents()[2].number, 3);
      EXPECT_EQ(reader.documents()[2].bytes, 8);
      EXPECT_EQ(reader.documents()[2].hash, base::hash64("efghijkl"));
    }
}

TEST_F(WindowsTest, CountNoTokenThatPackingPutsAroundDocuments) {
  const SourceOptions options = source({write("a.jsonl", test::jsonl({"ab", "c"}))});
  const auto id = [](char c) { return test::kFirstByteId + c; };
  WindowReader both(options, Split::all, {.context = 16, .eos = true}, encode_bytes, kSpecial);
  EXPECT_EQ(windows(both).at(0).targets,
            (Ids{id('a'), id('b'), kNoTarget, kNoTarget, id('c'), kNoTarget, kNoTarget}));
  WindowReader neither(options, Split::all, {.context = 16, .bos = Bos::never}, encode_bytes, kSpecial);
  EXPECT_EQ(windows(neither).at(0).targets, (Ids{id('b'), id('c'), kNoTarget}));
}

TEST_F(WindowsTest, CountSpecialTokensThatTheTextHasItself) {
  const Encode marks = [](std::string_view text) {
    Ids ids;
    for (const char c : text) ids.push_back(c == '|' ? kSpecial.bos : test::kFirstByteId + c);
    return ids;
  };
  WindowReader reader(source({write("a.txt", "a|b")}), Split::all, {.context = 16}, marks, kSpecial);
  const auto id = [](char c) { return test::kFirstByteId + c; };
  EXPECT_EQ(windows(reader).at(0).targets, (Ids{id('a'), kSpecial.bos, id('b'), kNoTarget}));
}

TEST_F(WindowsTest, AreDisjointWithoutOverlapAndTheLastIsShorter) {
  const SourceOptions options = source({write("a.txt", "abcdefghij")});
  WindowReader reader(options, Split::all, {.context = 4, .overlap_tokens = 0, .bos = Bos::never},
                      encode_bytes, kSpecial);
  const auto all = windows(reader);
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0].ids, encode_bytes("abcd"));
  EXPECT_EQ(all[1].ids, encode_bytes("efgh"));
  EXPECT_EQ(all[2].ids, encode_bytes("ij"));
  EXPECT_EQ(all[2].number, 2);
}

TEST_F(WindowsTest, KeepDocumentsApartWhenAsked) {
  const SourceOptions options = source({write("a.jsonl", test::jsonl({"ab", "c"}))});
  WindowReader reader(options, Split::all, {.context = 16, .eos = true, .attend_across_documents = false},
                      encode_bytes, kSpecial);
  const auto all = windows(reader);
  ASSERT_EQ(all.size(), 1U);
  const auto id = [](char c) { return test::kFirstByteId + c; };
  EXPECT_EQ(all[0].ids, (Ids{1, id('a'), id('b'), 2, 1, id('c'), 2}));
  EXPECT_EQ(all[0].targets, (Ids{id('a'), id('b'), kNoTarget, kNoTarget, id('c'), kNoTarget, kNoTarget}));
  EXPECT_EQ(all[0].starts, (Ids{0, 4}));
}

TEST_F(WindowsTest, StopAfterTheDocumentThatReachesTheLimit) {
  const SourceOptions options = source({write("a.jsonl", test::jsonl({"aaaa", "bbbb", "cccc"}))});
  WindowReader reader(options, Split::all, {.context = 100, .tokens = 6}, encode_bytes, kSpecial);
  const auto all = windows(reader);
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].ids.size(), 10U);
  EXPECT_EQ(reader.bytes(), 8);
}

TEST_F(WindowsTest, RefuseASplitWithoutText) {
  SourceOptions options = source({write("a.jsonl", test::jsonl({"one", ""}))});
  Sequence window;
  const auto message = message_of<DataError>(
      [&] { WindowReader(options, Split::held_out, {}, encode_bytes, kSpecial).next(window); });
  EXPECT_SAYS(message, "'manuals'");
  EXPECT_SAYS(message, "held-out");
  options.paths = {write("empty.txt", "")};
  EXPECT_SAYS(message_of<DataError>(
                  [&] { WindowReader(options, Split::all, {}, encode_bytes, kSpecial).next(window); }),
              "'manuals'");
}

}  // namespace
}  // namespace retort::data
