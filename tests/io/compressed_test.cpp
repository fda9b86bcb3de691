#include "retort/io/compressed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "files_for_tests.h"
#include "retort/base/error.h"
#include "retort/base/random.h"
#include "support/compress.h"
#include "support/outside_data.h"
#include "support/temporary_directory.h"

namespace retort::io {
namespace {

using base::DataError;
using test::gzip;
using test::message_of;
using test::zstd;

std::string sample_text(std::size_t bytes) {
  base::Random random(3, 1);
  std::string text;
  while (text.size() < bytes)
    text += "word" + std::to_string(random.next_below(5000)) + (text.size() % 7 == 0 ? "\n" : " ");
  return text;
}

class Compressed : public ::testing::Test {
 protected:
  std::string read(const std::string& content, std::size_t buffer_bytes = 4096) {
    test::write_file(file(), content);
    ByteReader reader(file());
    std::string out;
    std::vector<char> buffer(buffer_bytes);
    while (const std::size_t count = reader.read(buffer)) out.append(buffer.data(), count);
    EXPECT_EQ(reader.read(buffer), 0U);
    return out;
  }
  std::string refusal(const std::string& content) {
    return message_of<DataError>([&] { read(content); });
  }
  std::filesystem::path file() const { return directory_ / "data"; }

  test::TemporaryDirectory directory_;
};

TEST_F(Compressed, ReadsEveryFormatWithBuffersOfAnySize) {
  const std::string text = sample_text(300000);
  for (const std::size_t buffer : {1U, 7U, 4096U, 1U << 20U}) {
    EXPECT_EQ(read(text, buffer), text);
    EXPECT_EQ(read(gzip(text), buffer), text);
    EXPECT_EQ(read(zstd(text), buffer), text);
  }
}

TEST_F(Compressed, ReadsSeveralMembersAndFramesAsOneStream) {
  const std::string text = sample_text(200000);
  EXPECT_EQ(read(gzip("a\n") + gzip("") + gzip(text)), "a\n" + text);
  EXPECT_EQ(read(zstd("a\n") + zstd("") + zstd(text)), "a\n" + text);
  const std::string skippable("\x50\x2a\x4d\x18\x03\0\0\0xyz", 11);
  EXPECT_EQ(read(skippable + zstd(text) + skippable), text);
}

TEST_F(Compressed, ReadsEmptyAndTinyFiles) {
  EXPECT_EQ(read(""), "");
  EXPECT_EQ(read("\x1f"), "\x1f");
  EXPECT_EQ(read("(\xb5/"), "(\xb5/");
  EXPECT_EQ(read(gzip("")), "");
  EXPECT_EQ(read(zstd("")), "");
}

TEST_F(Compressed, RefusesEveryTruncation) {
  const std::string text = sample_text(400);
  for (const std::string& whole : {gzip(text), zstd(text)})
    for (std::size_t size = 4; size < whole.size(); ++size) {
      const std::string message = refusal(whole.substr(0, size));
      EXPECT_SAYS(message, "ends in the middle");
      EXPECT_SAYS(message, "byte " + std::to_string(size));
    }
}

TEST_F(Compressed, RefusesATruncatedSecondPart) {
  EXPECT_SAYS(refusal(gzip("abc") + gzip("def").substr(0, 3)), "ends in the middle");
  EXPECT_SAYS(refusal(zstd("abc") + zstd("def").substr(0, 3)), "ends in the middle");
}

TEST_F(Compressed, RefusesGarbageBehindTheData) {
  EXPECT_SAYS(refusal(gzip("abc") + "garbage"), "corrupt gzip");
  EXPECT_SAYS(refusal(zstd("abc") + "garbage"), "corrupt zstd");
}

TEST_F(Compressed, NeverTakesFlippedBitsForTheText) {
  const std::string text = sample_text(3000);
  base::Random random(5, 2);
  for (const std::string& whole : {gzip(text), zstd(text)}) {
    int refused = 0;
    for (int i = 0; i < 400; ++i) {
      std::string damaged = whole;
      damaged[4 + random.next_below(whole.size() - 4)] ^= static_cast<char>(1U << random.next_below(8));
      try {
        EXPECT_EQ(read(damaged), text);  // for example the time stamp of gzip
      } catch (const DataError&) {
        ++refused;
      }
    }
    EXPECT_GT(refused, 340);
  }
}

TEST_F(Compressed, RefusesAWindowBeyondTheMemoryLimit) {
  // Magic, a descriptor without content size, a window of 2^31 bytes.
  EXPECT_SAYS(refusal(std::string("\x28\xb5\x2f\xfd\x00\xa8\x01\x00\x00", 9)), "requires too much memory");
}

TEST_F(Compressed, NamesAFileThatIsNotThere) {
  EXPECT_SAYS(message_of<base::StorageError>([&] { ByteReader reader(directory_ / "none"); }), "none");
  EXPECT_SAYS(message_of<base::DataError>([&] { ByteReader(directory_.path()).read({}); }), "directory");
}

TEST_F(Compressed, SplitsLinesAndKnowsWhereTheyStand) {
  test::write_file(file(), gzip("one\n\nthree\r\nlast"));
  LineReader lines(file());
  const std::vector<std::string> expected{"one", "", "three\r", "last"};
  const std::vector<std::uint64_t> offsets{0, 4, 5, 12};
  std::string line;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    ASSERT_TRUE(lines.next(line));
    EXPECT_EQ(line, expected[i]);
    EXPECT_EQ(lines.line_number(), i + 1);
    EXPECT_EQ(lines.byte_offset(), offsets[i]);
  }
  EXPECT_FALSE(lines.next(line));
  EXPECT_TRUE(line.empty());
}

TEST_F(Compressed, DoesNotInventALineAfterTheLastNewline) {
  test::write_file(file(), "a\n");
  LineReader lines(file());
  std::string line;
  EXPECT_TRUE(lines.next(line));
  EXPECT_FALSE(lines.next(line));
  test::write_file(file(), "");
  EXPECT_FALSE(LineReader(file()).next(line));
}

TEST_F(Compressed, ReadsLinesLongerThanItsBuffer) {
  const std::string wide(1000000, 'x');
  test::write_file(file(), zstd(wide + "\nshort\n"));
  LineReader lines(file());
  std::string line;
  ASSERT_TRUE(lines.next(line));
  EXPECT_EQ(line, wide);
  ASSERT_TRUE(lines.next(line));
  EXPECT_EQ(line, "short");
}

TEST_F(Compressed, RefusesALineBeyondTheLimit) {
  test::write_file(file(), "1234\n12345\n");
  LineReader lines(file(), 4);
  std::string line;
  EXPECT_TRUE(lines.next(line));
  EXPECT_SAYS(message_of<DataError>([&] { lines.next(line); }), "line 2 is longer than 4 bytes");
}

TEST(CompressedSharedData, EveryLineOfTheManualsIsAnObject) {
  RETORT_SHARED_DATA_OR_SKIP(data);
  std::uint64_t total = 0;
  for (const auto& entry : std::filesystem::directory_iterator(data / "text" / "manuals")) {
    if (entry.path().extension() != ".zst") continue;
    LineReader lines(entry.path());
    std::string line;
    while (lines.next(line)) {
      ASSERT_TRUE(line.size() >= 2 && line.front() == '{' && line.back() == '}') << entry.path();
      ++total;
    }
  }
  EXPECT_GT(total, 10000U);
}

}  // namespace
}  // namespace retort::io
