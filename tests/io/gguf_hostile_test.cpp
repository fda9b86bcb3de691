#include <gtest/gtest.h>

#include <limits>

#include "files_for_tests.h"
#include "retort/base/error.h"
#include "retort/io/gguf.h"
#include "support/gguf_writer.h"
#include "support/temporary_directory.h"

namespace retort::io {
namespace {

using base::ModelError;
using test::gguf_text;
using test::GgufWriter;
using test::little_endian;
using test::message_of;

std::string refusal(const std::string& file) {
  return message_of<ModelError>([&] { parse_gguf(test::as_bytes(file), "x.gguf"); });
}
std::string refusal(const GgufWriter& file) {
  return refusal(file.bytes());
}

// One tensor "a" of eight values.
GgufWriter one_tensor() {
  GgufWriter file;
  file.text("general.architecture", "llama");
  file.tensor("a", {8}, 0, std::string(32, 'x'));
  return file;
}

// A file with one metadata value.
GgufWriter one_value(std::uint32_t type, const std::string& bytes) {
  GgufWriter file;
  file.raw("key", type, bytes);
  return file;
}

TEST(GgufHostile, ReadsASoundFileOfBothVersions) {
  for (const std::uint32_t version : {2U, 3U}) {
    auto file = one_tensor();
    file.version = version;
    file.raw("i8", 1, "\xFF");
    file.raw("u64", 10, little_endian(std::uint64_t{1} << 40));
    file.raw("f64", 12, little_endian(0.5));
    file.real("small", 1e-5F);
    const auto bytes = file.bytes();
    const auto header = parse_gguf(test::as_bytes(bytes), "x.gguf");
    EXPECT_EQ(header.metadata.at("i8"), -1);
    EXPECT_EQ(header.metadata.at("u64"), std::uint64_t{1} << 40);
    EXPECT_EQ(header.metadata.at("f64"), 0.5);
    EXPECT_EQ(header.metadata.at("small"), 1e-5);
    EXPECT_EQ(header.tensors.at("a").size, 32U);
  }
}

TEST(GgufHostile, RefusesEveryFileThatIsCutShort) {
  const std::string whole = one_tensor().bytes();
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_FALSE(refusal(whole.substr(0, size)).empty()) << size << " bytes";
  EXPECT_SAYS(refusal(whole.substr(0, 40)), "truncated");
  EXPECT_SAYS(refusal(whole.substr(0, whole.size() - 1)), "the file is truncated");
}

TEST(GgufHostile, NeverCrashesWhereAByteIsAnother) {
  auto file = one_tensor();
  file.texts("list", {"one", "two"});
  file.integers("numbers", {1, 2, 3});
  const std::string whole = file.bytes();
  int accepted = 0;
  for (std::size_t at = 0; at < whole.size(); ++at)
    for (const char byte : {'\0', '\1', '\x7F', '\x80', '\xFF'}) {
      std::string damaged = whole;
      damaged[at] = byte;
      try {
        parse_gguf(test::as_bytes(damaged), "x.gguf");
        ++accepted;
      } catch (const ModelError&) {
      }
    }
  EXPECT_GT(accepted, 0);
}

TEST(GgufHostile, RefusesOtherFilesAndVersions) {
  EXPECT_SAYS(refusal("version https://git-lfs.github.com"), "does not begin with \"GGUF\"");
  auto file = one_tensor();
  file.version = 1;
  EXPECT_SAYS(refusal(file), "is GGUF version 1, expected 2 or 3");
  file.version = 0x03000000;
  EXPECT_SAYS(refusal(file), "big-endian");
}

TEST(GgufHostile, RefusesLyingCounts) {
  auto file = one_tensor();
  file.claimed_tensors = std::uint64_t{1} << 60;
  EXPECT_SAYS(refusal(file), "claims 1152921504606846976 tensors");
  file = one_tensor();
  file.claimed_keys = std::uint64_t{1} << 60;
  EXPECT_SAYS(refusal(file), "metadata keys, expected at most");
  file = one_tensor();
  file.claimed_tensors = 2;
  EXPECT_FALSE(refusal(file).empty());
  const auto list = [](std::uint64_t count) {
    return one_value(9, little_endian(std::uint32_t{8}) + little_endian(count));
  };
  EXPECT_SAYS(refusal(list(std::numeric_limits<std::uint64_t>::max())), "entries, expected at most");
  EXPECT_SAYS(refusal(list(1'000'000)), "a metadata list at byte");
}

TEST(GgufHostile, RefusesLyingLengthsOfTexts) {
  EXPECT_SAYS(refusal(one_value(8, little_endian(std::numeric_limits<std::uint64_t>::max()))),
              "needs 18446744073709551615 bytes");
  EXPECT_SAYS(refusal(one_value(8, little_endian(std::uint64_t{1} << 30) + "abc")),
              "a metadata text at byte");
}

TEST(GgufHostile, RefusesTypesOfMetadataThatDoNotExist) {
  EXPECT_SAYS(refusal(one_value(13, "")), "has type 13, expected 0 to 12");
  EXPECT_SAYS(refusal(one_value(7, "\2")), "is 2, expected 0 or 1");
  EXPECT_SAYS(refusal(one_value(9, little_endian(std::uint32_t{9}) + little_endian(std::uint64_t{1}) +
                                       std::string(12, '\0'))),
              "list of lists");
}

TEST(GgufHostile, RefusesKeysAndTensorsThatStandTwice) {
  auto file = one_tensor();
  file.number("key", 1);
  file.number("key", 1);
  EXPECT_SAYS(refusal(file), "metadata \"key\" stands twice");
  file = one_tensor();
  file.tensor("a", {8}, 0, std::string(32, 'y'));
  EXPECT_SAYS(refusal(file), "tensor \"a\" stands twice");
}

TEST(GgufHostile, RefusesNamesThatAreNoText) {
  GgufWriter file;
  file.number("", 1);
  EXPECT_SAYS(refusal(file), "metadata key 0 is \"\"");
  file = {};
  file.tensor("a\nb", {8}, 0, std::string(32, 'x'));
  EXPECT_SAYS(refusal(file), "a tensor is named \"a\\x0ab\"");
  file = {};
  file.text("general.name", "\xFF\xFE");
  EXPECT_SAYS(refusal(file), "is not UTF-8");
}

TEST(GgufHostile, RefusesShapesThatCannotBe) {
  const auto shaped = [](std::vector<std::uint64_t> extents, std::uint32_t type) {
    GgufWriter file;
    file.tensor("a", std::move(extents), type, std::string(64, 'x'));
    return refusal(file);
  };
  EXPECT_SAYS(shaped({}, 0), "0 dimensions, expected 1 to 4");
  EXPECT_SAYS(shaped({1, 1, 1, 1, 1}, 0), "5 dimensions");
  EXPECT_SAYS(shaped({0}, 0), "a dimension of 0");
  EXPECT_SAYS(shaped({std::uint64_t{1} << 63}, 0), "a dimension of 9223372036854775808");
  EXPECT_SAYS(shaped({std::uint64_t{1} << 62, 8}, 0), "needs more bytes than can be counted");
  EXPECT_SAYS(shaped({std::uint64_t{1} << 32, std::uint64_t{1} << 31, 4}, 2),
              "more bytes than can be counted");
  EXPECT_SAYS(shaped({33}, 8), "rows of 33 values, expected whole blocks of 32 as Q8_0");
  EXPECT_SAYS(shaped({std::uint64_t{1} << 40}, 0), "the file is truncated");
}

TEST(GgufHostile, RefusesTypesOfTensorsThatItDoesNotRead) {
  GgufWriter file;
  file.tensor("a", {256}, 23, std::string(136, 'x'));
  EXPECT_SAYS(refusal(file), "tensor \"a\" is stored as IQ4_XS, expected F32");
  file.tensors[0].type = 77;
  EXPECT_SAYS(refusal(file), "stored as type 77");
}

TEST(GgufHostile, RefusesPlacesThatOverlapOrLeaveTheFile) {
  auto file = one_tensor();
  file.tensor("b", {16}, 0, std::string(64, 'y'));
  file.tensors[0].offset = 64;
  EXPECT_SAYS(refusal(file), "tensor \"a\" begins at byte 64 of the data, inside \"b\", which ends at 96");
  file.tensors[0].offset = 0;
  file.tensors[1].offset = 64;
  EXPECT_SAYS(refusal(file), "the file is truncated");
  file.tensors[1].offset = std::uint64_t{1} << 63;
  EXPECT_SAYS(refusal(file), "the file is truncated");
  file.tensors[1].offset = 33;
  EXPECT_SAYS(refusal(file), "begins at byte 33 of the data, expected a multiple of 32");
}

TEST(GgufHostile, RefusesAlignmentsThatCannotBe) {
  for (const std::uint32_t alignment : {0U, 24U, 1U << 31}) {
    auto file = one_tensor();
    file.number("general.alignment", alignment);
    EXPECT_SAYS(refusal(file), "general.alignment is");
  }
  auto file = one_tensor();
  file.text("general.alignment", "32");
  EXPECT_SAYS(refusal(file), "expected a power of two");
  file = one_tensor();
  file.number("general.alignment", 128);
  file.alignment = 128;
  const auto bytes = file.bytes();
  EXPECT_EQ(parse_gguf(test::as_bytes(bytes), "x.gguf").data_start % 128, 0U);
}

TEST(GgufHostile, RefusesWhatIsNoFile) {
  const test::TemporaryDirectory directory;
  EXPECT_SAYS(message_of<ModelError>([&] { GgufFile::open(directory.path()); }), "not a regular file");
  test::write_file(directory / "empty.gguf", "");
  EXPECT_SAYS(message_of<ModelError>([&] { GgufFile::open(directory / "empty.gguf"); }), "0 bytes");
  EXPECT_SAYS(message_of<base::StorageError>([&] { GgufFile::open(directory / "none.gguf"); }),
              "cannot be opened");
}

}  // namespace
}  // namespace retort::io
