// Real text, where it is at hand.
#include <map>

#include "data/corpus.h"
#include "retort/data/sequence_stream.h"
#include "support/outside_data.h"

namespace retort::data {
namespace {

class SharedDataTest : public test::Corpus {};

struct Known {
  std::int64_t documents;
  std::int64_t bytes;
  std::int64_t bytes_of_document_49;
};

const std::map<std::string, Known> kManuals = {
    {"bg", {161, 898181, 5317}},    {"cs", {1148, 3956481, 3497}}, {"da", {1081, 3444911, 3244}},
    {"de", {4178, 13504374, 3526}}, {"el", {1255, 7041621, 5657}}, {"en", {5719, 18084317, 3240}},
    {"es", {2094, 6732607, 3222}},  {"fi", {460, 1497928, 3197}},  {"fr", {3736, 12202225, 3203}},
    {"ga", {54, 174031, 3252}},     {"it", {2135, 6775605, 3287}}, {"lt", {222, 740656, 3492}},
    {"lv", {120, 400133, 3344}},    {"nl", {1588, 5010619, 3142}}, {"pl", {1522, 5027622, 3248}},
    {"pt", {1542, 5004473, 3142}},  {"sk", {139, 465548, 3371}},   {"sl", {856, 2726900, 3283}},
};

TEST_F(SharedDataTest, ReadsTheManualsCompletely) {
  RETORT_SHARED_DATA_OR_SKIP(shared);
  for (const auto& [language, known] : kManuals) {
    SourceOptions options =
        source({(shared / "text/manuals" / (language + ".jsonl.zst")).string()}, language);
    options.held_out.every = 50;
    DocumentReader reader(options, Split::all);
    std::int64_t documents = 0, bytes = 0;
    for (Document document; reader.next(document); ++documents)
      bytes += static_cast<std::int64_t>(document.text.size());
    EXPECT_EQ(documents, known.documents) << language;
    EXPECT_EQ(bytes, known.bytes) << language;

    DocumentReader held_out(options, Split::held_out);
    Document document;
    ASSERT_TRUE(held_out.next(document));
    EXPECT_EQ(document.number, 49);
    EXPECT_EQ(static_cast<std::int64_t>(document.text.size()), known.bytes_of_document_49) << language;
    if (language == "en") {
      EXPECT_TRUE(document.text.starts_with("Description: If this option is true, aptitude will"));
    }
    std::int64_t count = 1;
    while (held_out.next(document)) EXPECT_EQ(document.number, 49 + 50 * count++);
    EXPECT_EQ(count, known.documents / 50);
  }
}

TEST_F(SharedDataTest, ReadsAllManualsAsOneSourceOfAGlob) {
  RETORT_SHARED_DATA_OR_SKIP(shared);
  const SourceOptions options = source({(shared / "text/manuals/{de,en}.jsonl.zst").string()});
  EXPECT_EQ(texts(options).size(), 4178U + 5719U);
}

TEST_F(SharedDataTest, PacksTheManualsByWeight) {
  RETORT_SHARED_DATA_OR_SKIP(shared);
  std::vector<SourceOptions> sources;
  for (const char* language : {"en", "de", "fr"}) {
    sources.push_back(
        source({(shared / "text/manuals" / (std::string(language) + ".jsonl.zst")).string()}, language));
    sources.back().held_out.every = 50;
  }
  SequenceStream stream(sources, {}, test::encode_bytes, test::kSpecial, 1);
  for (int i = 0; i < 20 * 256; ++i) stream.next();  // whole windows: statistics count what was packed
  for (const SourceStatistics& statistics : stream.statistics())
    EXPECT_NEAR(static_cast<double>(statistics.tokens), 20 * 256 * 512 / 3.0, 20000) << statistics.name;
}

}  // namespace
}  // namespace retort::data
