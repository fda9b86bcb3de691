#include <zlib.h>

#include <cstdio>
#include <fstream>

#include "data/corpus.h"
#include "retort/data/sequence_stream.h"

namespace retort::data {
namespace {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr double kSanitizerFactor = 16;  // shadow memory, and 256 MB of freed memory in quarantine
#else
constexpr double kSanitizerFactor = 1;
#endif

double status_mb(std::string_view name) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (word == name) {
      double kilobytes = 0;
      status >> kilobytes;
      return kilobytes / 1000;
    }
  return 0;
}

double resident_mb() {
  return status_mb("VmRSS:");
}

class MemoryTest : public test::Corpus {
 protected:
  // `megabytes` of JSONL in documents of about 4 KB.
  std::string write_big(int megabytes) const {
    const std::string path = (directory_ / "big.jsonl.gz").string();
    const gzFile file = gzopen(path.c_str(), "wb1");
    const std::string rest = std::string(4000, 'x') + "\"}\n";
    for (int i = 0; i < megabytes * 250; ++i) {
      const std::string line = "{\"text\": \"" + std::to_string(i) + rest;
      EXPECT_GT(gzwrite(file, line.data(), static_cast<unsigned>(line.size())), 0);
    }
    gzclose(file);
    return path;
  }
};

TEST_F(MemoryTest, DoesNotGrowWithTheCorpus) {
  const auto big = source({write_big(200)});
  const Encode sparse = [](std::string_view text) { return std::vector<std::int32_t>(text.size() / 8, 5); };
  const double before = resident_mb();
  ASSERT_GT(before, 0);
  SequenceStream stream({big}, {.sequence_length = 512, .shuffle_documents = 1024}, sparse, test::kSpecial,
                        1);
  double peak = before;
  while (stream.statistics()[0].epoch == 0) {
    stream.next();
    peak = std::max(peak, resident_mb());
  }
  EXPECT_GE(stream.statistics()[0].bytes, 200'000'000);
  // A window is 4 MB of text; the rest is buffers and the allocator.
  EXPECT_LT(peak - before, 24 * kSanitizerFactor);
  RecordProperty("growth_mb", std::to_string(peak - before));
}

TEST_F(MemoryTest, KeepsAWindowOfLongDocumentsInItsBytes) {
  const auto big = source({write_big(200)});
  const Encode sparse = [](std::string_view text) { return std::vector<std::int32_t>(text.size() / 64, 5); };
  const double before = resident_mb();
  SequenceStream stream({big}, {.sequence_length = 512, .shuffle_documents = 1'000'000}, sparse,
                        test::kSpecial, 1);
  for (int i = 0; i < 3000; ++i) stream.next();
  EXPECT_LT(resident_mb() - before, 64 * 1.3 * kSanitizerFactor);
}

TEST_F(MemoryTest, TakesOfALineWhatItHoldsAndNoTreeOfIt) {
  constexpr int kLists = 4'000'000;
  std::string line = "{\"text\": \"one\", \"x\": [";
  line.reserve(4 * kLists);
  for (int i = 0; i < kLists; ++i) line += "[],";
  const auto big = source({write("lists.jsonl.gz", test::gzip(line + "[]]}\n"))});
  line = {};
  const double before = resident_mb();
  std::ofstream("/proc/self/clear_refs") << 5;  // the peak begins anew
  EXPECT_EQ(texts(big), std::vector<std::string>{"one"});
  EXPECT_LT(status_mb("VmHWM:") - before, 60 * kSanitizerFactor);
}

}  // namespace
}  // namespace retort::data
