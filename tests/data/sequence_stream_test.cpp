#include "retort/data/sequence_stream.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <numeric>
#include <thread>
#include <tuple>

#include "data/corpus.h"
#include "retort/base/error.h"

namespace retort::data {
namespace {

using base::DataError;
using base::UsageError;
using test::encode_bytes;
using test::kFirstByteId;
using test::kSpecial;
using test::message_of;
using Ids = std::vector<std::int32_t>;

void expect_same(const Sequence& a, const Sequence& b) {
  ASSERT_EQ(a.number, b.number);
  ASSERT_EQ(a.ids, b.ids);
  ASSERT_EQ(a.targets, b.targets);
  ASSERT_EQ(a.starts, b.starts);
}

// The texts between begin-of-text tokens of a row of sequences; the last may be cut.
std::vector<std::string> texts_of(const std::vector<Sequence>& sequences) {
  std::vector<std::string> texts;
  for (const Sequence& sequence : sequences)
    for (const std::int32_t id : sequence.ids) {
      if (id == kSpecial.bos)
        texts.emplace_back();
      else if (id >= kFirstByteId)
        texts.back() += static_cast<char>(id - kFirstByteId);
    }
  return texts;
}

class SequenceStreamTest : public test::Corpus {
 protected:
  std::vector<SourceOptions> two_sources() const {
    auto a = source({write("a.jsonl.zst", test::zstd(test::jsonl(test::numbered_texts("a", 150)))),
                     write("a2.jsonl", test::jsonl(test::numbered_texts("aa", 50, 700)))},
                    "a");
    auto b =
        source({write("b.jsonl.gz", test::gzip(test::jsonl(test::numbered_texts("b", 60)) + "bad\n"))}, "b");
    b.weight = 0.5;
    b.skip_bad_lines = true;
    a.held_out.fraction = b.held_out.fraction = 0.1;
    return {a, b};
  }
  static std::vector<Sequence> take(SequenceStream& stream, int count) {
    std::vector<Sequence> sequences;
    for (int i = 0; i < count; ++i) sequences.push_back(stream.next());
    return sequences;
  }
};

struct PackingCase {
  bool bos, eos, across;
  std::int64_t length;
};

class PackingTest : public test::Corpus, public ::testing::WithParamInterface<PackingCase> {};

TEST_P(PackingTest, CutsTheEndlessStreamIntoSequencesWithTheirTargetsAndStarts) {
  const auto [bos, eos, across, length] = GetParam();
  const auto written = test::numbered_texts("doc", 30);
  SequenceStream stream({source({write("a.jsonl", test::jsonl(written))})},
                        {.sequence_length = length,
                         .bos = bos ? Bos::always : Bos::never,
                         .eos = eos,
                         .attend_across_documents = across,
                         .shuffle_documents = 1,
                         .shuffle_sequences = 1},
                        encode_bytes, kSpecial, 0);
  Ids ids, document_of;  // the stream written out: two epochs in source order
  for (int i = 0; i < 60; ++i) {
    Ids document = encode_bytes(written[static_cast<std::size_t>(i % 30)]);
    if (bos) document.insert(document.begin(), kSpecial.bos);
    if (eos) document.push_back(kSpecial.eos);
    ids.insert(ids.end(), document.begin(), document.end());
    document_of.insert(document_of.end(), document.size(), i);
  }
  for (std::size_t begin = 0; begin + static_cast<std::size_t>(length) < ids.size();
       begin += static_cast<std::size_t>(length)) {
    const Sequence sequence = stream.next();
    ASSERT_EQ(static_cast<std::int64_t>(sequence.ids.size()), length);
    ASSERT_EQ(static_cast<std::int64_t>(sequence.targets.size()), length);
    Ids starts;
    for (std::size_t i = 0; i < sequence.ids.size(); ++i) {
      const std::size_t at = begin + i;
      ASSERT_EQ(sequence.ids[i], ids[at]);
      const bool same = across || document_of[at + 1] == document_of[at];
      ASSERT_EQ(sequence.targets[i], same ? ids[at + 1] : kNoTarget);
      if (i == 0 || (!across && document_of[at] != document_of[at - 1]))
        starts.push_back(static_cast<std::int32_t>(i));
    }
    ASSERT_EQ(sequence.starts, starts);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Packing, PackingTest,
    ::testing::Values(PackingCase{true, false, false, 32}, PackingCase{true, true, false, 32},
                      PackingCase{false, true, false, 7}, PackingCase{false, false, false, 1},
                      PackingCase{true, true, true, 32}, PackingCase{true, false, true, 500}));

TEST_F(SequenceStreamTest, GivesEveryTrainingDocumentOnceInAnEpochShuffledInsideItsWindow) {
  const auto written = test::numbered_texts("doc", 100);
  DocumentReader reader(source({write("a.jsonl", test::jsonl(written))}), Split::training);
  ShuffledSource shuffled(std::move(reader), {.seed = 3, .documents = 16});
  std::vector<std::vector<std::int64_t>> epochs(3);
  Document document;
  for (auto& epoch : epochs)
    for (int i = 0; i < 100; ++i) {
      shuffled.next(document);
      epoch.push_back(document.number);
      EXPECT_EQ(document.number / 16, i / 16) << "a document left its window";
    }
  std::vector<std::int64_t> sorted = epochs[0], source_order(100);
  std::sort(sorted.begin(), sorted.end());
  std::iota(source_order.begin(), source_order.end(), 0);
  EXPECT_EQ(sorted, source_order);
  EXPECT_NE(epochs[0], source_order);
  EXPECT_NE(epochs[0], epochs[1]);
  EXPECT_NE(epochs[1], epochs[2]);
  EXPECT_EQ(shuffled.place().epoch, 2);
}

TEST_F(SequenceStreamTest, BoundsAWindowInBytesToo) {
  DocumentReader reader(
      source({write("a.jsonl", test::jsonl(std::vector<std::string>(10, std::string(100, 'x'))))}),
      Split::training);
  ShuffledSource shuffled(std::move(reader), {.documents = 1000, .bytes = 250});
  Document document;
  for (int i = 0; i < 10; ++i) {
    shuffled.next(document);
    EXPECT_EQ(shuffled.place().window, i / 3);
  }
}

TEST_F(SequenceStreamTest, IsDeterminedBySeedAndSources) {
  const PackingOptions packing{.sequence_length = 48, .shuffle_documents = 32};
  SequenceStream stream(two_sources(), packing, encode_bytes, kSpecial, 11);
  SequenceStream again(two_sources(), packing, encode_bytes, kSpecial, 11);
  SequenceStream other(two_sources(), packing, encode_bytes, kSpecial, 12);
  bool differs = false;
  for (int i = 0; i < 600; ++i) {
    const Sequence sequence = stream.next();
    expect_same(sequence, again.next());
    differs = differs || sequence.ids != other.next().ids;
  }
  EXPECT_TRUE(differs);
}

TEST_F(SequenceStreamTest, ShufflesPackedSequencesInsideAWindow) {
  using Content = std::tuple<Ids, Ids, Ids>;
  const auto content = [](const Sequence& sequence) {
    return Content(sequence.ids, sequence.targets, sequence.starts);
  };
  const PackingOptions packing{.sequence_length = 48, .shuffle_sequences = 16};
  SequenceStream stream(two_sources(), packing, encode_bytes, kSpecial, 11);
  SequencePacker packer(two_sources(), packing, encode_bytes, kSpecial, 11);
  int moved = 0;
  for (std::int64_t window = 0; window < 20; ++window) {
    std::vector<Content> given, packed;
    for (std::int64_t i = 0; i < 16; ++i) {
      const Sequence sequence = stream.next();
      ASSERT_EQ(sequence.number, 16 * window + i);
      given.push_back(content(sequence));
      packed.push_back(content(packer.next()));
      moved += given.back() != packed.back() ? 1 : 0;
    }
    std::sort(given.begin(), given.end());
    std::sort(packed.begin(), packed.end());
    ASSERT_EQ(given, packed) << "each sequence of the window once, and no other";
  }
  EXPECT_GT(moved, 200) << "of 320";
}

TEST_F(SequenceStreamTest, NeverShowsAHeldOutDocument) {
  const auto sources = two_sources();
  std::set<std::string> held_out;
  for (const SourceOptions& options : sources)
    for (const std::string& text : texts(options, Split::held_out)) held_out.insert(text);
  ASSERT_GT(held_out.size(), 5U);
  SequenceStream stream(sources, {.sequence_length = 64, .shuffle_sequences = 1}, encode_bytes, kSpecial, 1);
  auto seen = texts_of(take(stream, 2000));
  ASSERT_GT(stream.statistics()[0].epoch, 1);
  for (const std::string& text : seen) EXPECT_FALSE(held_out.contains(text)) << text;
}

TEST_F(SequenceStreamTest, SharesTokensByWeight) {
  auto sources = two_sources();
  sources[0].weight = 3;
  sources[1].weight = 1;
  SequenceStream stream(sources, {.sequence_length = 64}, encode_bytes, kSpecial, 1);
  take(stream, 1000);
  const auto& statistics = stream.statistics();
  const double longest_document = 710;
  EXPECT_NEAR(static_cast<double>(statistics[0].tokens), 3.0 * static_cast<double>(statistics[1].tokens),
              3 * longest_document);
  EXPECT_EQ(statistics[0].skipped_lines, 0);
  EXPECT_EQ(statistics[1].skipped_lines, 1) << "counted once, however often the source is read";
  EXPECT_EQ(statistics[1].tokens, statistics[1].bytes + statistics[1].documents);
}

TEST_F(SequenceStreamTest, GoesOnExactlyFromACursor) {
  const PackingOptions packing{.sequence_length = 48, .shuffle_documents = 32, .shuffle_sequences = 24};
  SequenceStream stream(two_sources(), packing, encode_bytes, kSpecial, 11);
  const int count = 800;
  std::vector<std::string> cursors;
  std::vector<std::vector<SourceStatistics>> statistics;
  std::vector<Sequence> sequences;
  for (int i = 0; i < count; ++i) {
    cursors.push_back(stream.cursor().dump());
    statistics.push_back(stream.statistics());
    sequences.push_back(stream.next());
  }
  ASSERT_GE(stream.statistics()[0].epoch, 1);
  ASSERT_GE(stream.statistics()[1].epoch, 2);
  SequenceStream resumed(two_sources(), packing, encode_bytes, kSpecial, 11);
  for (std::size_t k = 0; k < cursors.size(); k += k < 60 ? 1 : 37) {
    EXPECT_LT(cursors[k].size(), 1000U);
    resumed.seek(base::Json::parse(cursors[k]));
    EXPECT_EQ(resumed.cursor().dump(), cursors[k]);
    for (std::size_t i = k; i < std::min<std::size_t>(k + 90, sequences.size()); ++i) {
      expect_same(resumed.next(), sequences[i]);
      if (i + 1 < cursors.size()) {
        ASSERT_EQ(resumed.cursor().dump(), cursors[i + 1]) << k;
        ASSERT_EQ(resumed.statistics()[0].tokens, statistics[i + 1][0].tokens);
      }
    }
    if (HasFatalFailure()) return;
  }
}

TEST_F(SequenceStreamTest, SeeksWithoutTokenizingWhatWasSeen) {
  const auto long_text = source({write("a.jsonl", test::jsonl(test::numbered_texts("a", 2000)))});
  const PackingOptions packing{.sequence_length = 64, .shuffle_documents = 100};
  std::atomic<int> encoded = 0;
  const Encode counting = [&](std::string_view text) {
    ++encoded;
    return encode_bytes(text);
  };
  SequencePacker packer({long_text}, packing, counting, kSpecial, 1);
  for (int i = 0; i < 600; ++i) packer.next();
  ASSERT_GT(encoded, 1000);
  SequencePacker resumed({long_text}, packing, counting, kSpecial, 1);
  encoded = 0;
  resumed.seek(packer.cursor());
  EXPECT_EQ(encoded, 1);
  expect_same(resumed.next(), packer.next());
}

TEST_F(SequenceStreamTest, CutsADocumentOfManySequencesAndResumesInside) {
  std::string text;
  for (int i = 0; i < 3000; ++i) text += std::to_string(i) + " ";
  const auto sources = std::vector{source({write("a.txt", text)})};
  const PackingOptions packing{.sequence_length = 50, .shuffle_sequences = 32};
  SequenceStream stream(sources, packing, encode_bytes, kSpecial, 1);
  take(stream, 100);
  SequenceStream resumed(sources, packing, encode_bytes, kSpecial, 1);
  resumed.seek(stream.cursor());
  for (int i = 0; i < 400; ++i) expect_same(resumed.next(), stream.next());
  EXPECT_EQ(stream.statistics()[0].epoch, 1);
}

TEST_F(SequenceStreamTest, RefusesACursorOfOtherDataOrAnotherSeed) {
  auto sources = two_sources();
  const PackingOptions packing{.sequence_length = 48};
  SequenceStream stream(sources, packing, encode_bytes, kSpecial, 1);
  take(stream, 5);
  const base::Json cursor = stream.cursor();
  SequenceStream other_seed(sources, packing, encode_bytes, kSpecial, 2);
  EXPECT_SAYS(message_of<DataError>([&] { other_seed.seek(cursor); }), "seed");
  SequenceStream other_length(sources, {.sequence_length = 49}, encode_bytes, kSpecial, 1);
  EXPECT_SAYS(message_of<DataError>([&] { other_length.seek(cursor); }), "packing");
  write("a2.jsonl", test::jsonl(test::numbered_texts("aa", 51)));
  SequenceStream other_file(sources, packing, encode_bytes, kSpecial, 1);
  EXPECT_SAYS(message_of<DataError>([&] { other_file.seek(cursor); }), "sources");
}

TEST_F(SequenceStreamTest, RefusesADamagedCursor) {
  SequenceStream stream(two_sources(), {.sequence_length = 48, .shuffle_sequences = 4}, encode_bytes,
                        kSpecial, 1);
  take(stream, 5);
  const base::Json cursor = stream.cursor();
  const Sequence sixth = stream.next();
  const auto refused = [&](const base::Json& damaged) {
    EXPECT_SAYS(message_of<DataError>([&] { stream.seek(damaged); }), "data cursor");
  };
  refused(base::Json());
  refused(base::Json::array());
  base::Json damaged = cursor;
  damaged.erase("sources");
  refused(damaged);
  damaged = cursor;
  damaged["offset_tokens"] = -1;
  refused(damaged);
  damaged = cursor;
  damaged["offset_tokens"] = 1'000'000;
  refused(damaged);
  damaged = cursor;
  damaged["taken"] = 4;
  refused(damaged);
  damaged = cursor;
  damaged["sources"][0]["start"] = {1, 2};
  refused(damaged);
  damaged = cursor;
  damaged["sources"].erase(1);
  refused(damaged);
  stream.seek(cursor);
  EXPECT_EQ(stream.next().ids, sixth.ids);
}

TEST_F(SequenceStreamTest, GivesWhatIsSoundBeforeTheErrorOfABadLine) {
  const std::string lines = test::jsonl(test::numbered_texts("a", 100));
  SequenceStream stream({source({write("a.jsonl", lines + "{\"text\": \n")})},
                        {.sequence_length = 100, .shuffle_documents = 10, .shuffle_sequences = 4},
                        encode_bytes, kSpecial, 1);
  const auto read_on = [&] {
    for (int i = 0; i < 1000; ++i) stream.next();
  };
  EXPECT_SAYS(message_of<DataError>(read_on), "line 101,");
  EXPECT_GT(stream.statistics()[0].documents, 80);
  EXPECT_SAYS(message_of<DataError>([&] { stream.next(); }), "line 101,");
}

TEST_F(SequenceStreamTest, RefusesAnEmptyCorpusNamingTheSource) {
  const auto message = [&](const SourceOptions& empty, const Encode& encode) {
    auto sources = two_sources();
    sources.push_back(empty);
    return message_of<DataError>([&] {
      SequenceStream stream(sources, {.sequence_length = 100, .bos = Bos::never}, encode, kSpecial, 1);
      take(stream, 100);
    });
  };
  EXPECT_SAYS(message(source({write("empty.jsonl", "")}, "void"), encode_bytes),
              "'void': expected documents");
  EXPECT_SAYS(message(source({write("empty.txt", "")}, "void"), encode_bytes), "'void'");
  auto all_held_out = source({write("some.jsonl", test::jsonl({"a", "b"}))}, "void");
  all_held_out.held_out.every = 1;
  EXPECT_SAYS(message(all_held_out, encode_bytes), "'void': expected documents with text, found 2 documents");
  auto all_bad = source({write("bad.jsonl", "x\ny\n")}, "void");
  all_bad.skip_bad_lines = true;
  EXPECT_SAYS(message(all_bad, encode_bytes), "2 bad line(s)");
  const Encode mute = [](std::string_view text) { return text == "mute" ? Ids{} : encode_bytes(text); };
  EXPECT_SAYS(message(source({write("mute.jsonl", test::jsonl({"mute", "mute"}))}, "void"), mute),
              "'void': expected documents with a token to predict");
}

TEST_F(SequenceStreamTest, RefusesASourceOfWhichNothingCanBeLearned) {
  auto sources = two_sources();
  sources.push_back(source({write("letters.jsonl", test::jsonl({"a", "b", "c"}))}, "letters"));
  const auto taken = [&](Bos bos, bool across) {
    SequenceStream stream(
        sources,
        {.sequence_length = 100, .bos = bos, .attend_across_documents = across, .shuffle_sequences = 1},
        encode_bytes, kSpecial, 1);
    take(stream, 100);
  };
  EXPECT_SAYS(message_of<DataError>([&] { taken(Bos::never, false); }),
              "'letters': expected documents with a token to predict");
  EXPECT_NO_THROW(taken(Bos::always, false)) << "the begin-of-text token predicts the only one";
  EXPECT_NO_THROW(taken(Bos::never, true));
}

// Texts that were made by a chat form begin with the token in writing.
TEST(Document, ThatBeginsWithAWrittenBeginOfTextGetsNoSecondOne) {
  const Encode encode = [](std::string_view text) {
    Ids ids;
    for (const char c : text) ids.push_back(c == '|' ? kSpecial.bos : kFirstByteId + c);
    return ids;
  };
  const auto encoded = [&](std::string_view text, Bos bos) {
    return encode_document(text, {.bos = bos}, encode, kSpecial);
  };
  for (const auto bos : {Bos::automatic, Bos::always}) {
    const auto plain = encoded("ab", bos), written = encoded("|ab", bos);
    EXPECT_EQ(written.ids, plain.ids);
    EXPECT_EQ(written.text_begin, 1U) << "the written one is no target of a metric";
    EXPECT_EQ(written.text_end, plain.text_end);
    EXPECT_EQ(encoded("|", bos).ids, encoded("", bos).ids);
    EXPECT_EQ(encoded("||ab", bos).ids, encode("||ab")) << "what else is written stays";
  }
  EXPECT_EQ(encoded("|ab", Bos::never).ids, encode("|ab"));
  EXPECT_EQ(encoded("|ab", Bos::never).text_begin, 0U);
}

TEST_F(SequenceStreamTest, RefusesWhatARecipeCannotMean) {
  auto sources = two_sources();
  const auto refused = [](const std::vector<SourceOptions>& tested, const PackingOptions& packing,
                          const SpecialTokens& special) {
    return message_of<UsageError>([&] { SequenceStream(tested, packing, encode_bytes, special, 1); });
  };
  EXPECT_SAYS(refused({}, {}, kSpecial), "at least one source");
  EXPECT_SAYS(refused({sources[0], sources[0]}, {}, kSpecial), "'a' twice");
  EXPECT_SAYS(refused(sources, {.bos = Bos::always}, {.bos = -1}), "begin-of-text");
  EXPECT_SAYS(refused(sources, {.bos = Bos::never, .eos = true}, {}), "end-of-text");
  EXPECT_SAYS(refused(sources, {.sequence_length = 0}, kSpecial), "length");
  sources[0].weight = 0;
  EXPECT_SAYS(refused(sources, {}, kSpecial), "weight");
}

TEST_F(SequenceStreamTest, PreparesAsManySequencesAsItIsTold) {
  constexpr int kLength = 16;
  std::atomic<int> documents = 0;
  const Encode one_sequence = [&](std::string_view) {
    ++documents;
    return std::vector<std::int32_t>(kLength, 7);
  };
  const auto sources = std::vector{source({write("a.jsonl", test::jsonl(test::numbered_texts("a", 500)))})};
  const PackingOptions packing{.sequence_length = kLength, .bos = Bos::never, .shuffle_sequences = 1};
  {
    SequenceStream few(sources, packing, one_sequence, kSpecial, 1, Split::training, 2);
    for (int taken = 1; taken <= 60; ++taken) {
      (void)few.next();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      // Two ready, one in hand, and a token of the next.
      ASSERT_LE(documents, taken + 4);
    }
  }
  documents = 0;
  SequenceStream many(sources, packing, one_sequence, kSpecial, 1, Split::training, 200);
  (void)many.next();
  for (int i = 0; i < 2000 && documents < 200; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_GE(documents, 200) << "a step of a hundred sequences finds two steps ready";
}

TEST_F(SequenceStreamTest, StopsPromptlyWhenItGoes) {
  const auto endless =
      source({write("a.jsonl.gz", test::gzip(test::jsonl(test::numbered_texts("a", 200'000))))});
  const Encode slow = [](std::string_view text) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    return encode_bytes(text);
  };
  auto stream = std::make_unique<SequenceStream>(std::vector{endless}, PackingOptions{.sequence_length = 32},
                                                 slow, kSpecial, 1);
  stream->next();
  const auto begin = std::chrono::steady_clock::now();
  stream.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2));
}

TEST_F(SequenceStreamTest, WaitsForNobodyWhenNothingWasAsked) {
  SequenceStream stream(two_sources(), {}, encode_bytes, kSpecial, 1);
  EXPECT_EQ(stream.cursor()["sequences"], 0);
  EXPECT_EQ(stream.statistics()[0].documents, 0);
}

// The documents of `prefix`, in the order in which they are given.
std::vector<std::string> given_of(SequencePacker& packer, const std::string& prefix, std::size_t count) {
  std::vector<std::string> all;
  while (all.size() < count + 1) {
    for (const auto id : packer.next().ids)
      if (id == kSpecial.bos) {
        if (!all.empty() && !all.back().starts_with(prefix)) all.pop_back();
        all.emplace_back();
      } else if (id >= kFirstByteId) {
        all.back() += static_cast<char>(id - kFirstByteId);
      }
  }
  all.resize(count);
  return all;
}

TEST_F(SequenceStreamTest, KeepsTheOrderOfASourceWhateverElseIsRead) {
  const auto a = source({write("a.jsonl", test::jsonl(test::numbered_texts("a", 300, 300'000)))}, "a");
  const auto b = source({write("b.jsonl", test::jsonl(test::numbered_texts("b", 500)))}, "b");
  const PackingOptions packing{.sequence_length = 64};
  const auto names = [](std::string_view text) { return encode_bytes(text.substr(0, text.find(' '))); };
  SequencePacker alone({a}, packing, names, kSpecial, 3), beside({b, a}, packing, names, kSpecial, 3);
  // More text than is shuffled at a time, so that the bound of a window counts.
  const auto expected = given_of(alone, "a", 250);
  EXPECT_EQ(given_of(beside, "a", 250), expected);
}

}  // namespace
}  // namespace retort::data
