// Files that lie: every rule of the format has a case that breaks only this rule.

#include <gtest/gtest.h>

#include <filesystem>
#include <vector>

#include "files_for_tests.h"
#include "retort/base/error.h"
#include "retort/base/random.h"
#include "retort/io/safetensors.h"
#include "support/temporary_directory.h"

namespace retort::io {
namespace {

using base::ModelError;
using test::as_bytes;
using test::message_of;
using test::safetensors_bytes;

std::string refusal(const std::string& file) {
  return message_of<ModelError>([&] { parse_safetensors(as_bytes(file), "weights"); });
}

std::string refusal(const std::string& header, const std::string& data) {
  return refusal(safetensors_bytes(header, data));
}

std::string entry(const std::string& name, const std::string& shape, const std::string& offsets) {
  return base::join('"', name, R"(":{"dtype":"F32","shape":)", shape, R"(,"data_offsets":)", offsets, "}");
}

TEST(SafetensorsHostile, AcceptsTheFileThatTheOthersAreMadeFrom) {
  const auto header = parse_safetensors(
      as_bytes(safetensors_bytes("{" + entry("a", "[2]", "[0,8]") + "}", "12345678")), "weights");
  EXPECT_EQ(header.tensors.at("a").shape, std::vector<std::int64_t>{2});
}

TEST(SafetensorsHostile, RefusesAFileWithoutALength) {
  EXPECT_SAYS(refusal(""), "length field");
  EXPECT_SAYS(refusal("1234567"), "length field");
}

TEST(SafetensorsHostile, RefusesAHeaderLongerThanTheFile) {
  std::string file = safetensors_bytes("{}", "");
  file[0] = 3;
  EXPECT_SAYS(refusal(file), "truncated");
}

TEST(SafetensorsHostile, RefusesAHeaderBeyondTheLimit) {
  EXPECT_SAYS(refusal(std::string("\x01\xe1\xf5\x05\0\0\0\0{}", 10)), "100000001");
  EXPECT_SAYS(refusal(std::string(8, '\xff') + "{}"), "18446744073709551615");
}

TEST(SafetensorsHostile, RefusesAHeaderThatIsNotUtf8) {
  EXPECT_SAYS(refusal("{\"a\xff\":1}", ""), "not sound JSON");
}

TEST(SafetensorsHostile, RefusesAHeaderThatIsNotJson) {
  EXPECT_SAYS(refusal("{\"a\":", ""), "not sound JSON");
  EXPECT_SAYS(refusal("{} x", ""), "not sound JSON");
  EXPECT_SAYS(refusal("[]", ""), "does not begin");
  EXPECT_SAYS(refusal("", ""), "does not begin");
  EXPECT_SAYS(refusal("   ", ""), "does not begin");
  EXPECT_SAYS(refusal("\xEF\xBB\xBF{}", ""), "does not begin");
}

TEST(SafetensorsHostile, RefusesBytesHiddenBehindAZero) {
  EXPECT_SAYS(refusal(std::string("{}\0PK hidden", 12), ""), "zero");
}

TEST(SafetensorsHostile, RefusesDuplicateNames) {
  EXPECT_SAYS(refusal("{" + entry("a", "[1]", "[0,4]") + "," + entry("a", "[1]", "[4,8]") + "}", "12345678"),
              "twice");
}

TEST(SafetensorsHostile, RefusesDeepNesting) {
  std::string deep = "{\"__metadata__\":";
  for (int i = 0; i < 100000; ++i) deep += '[';
  EXPECT_SAYS(refusal(deep, ""), "nested");
}

TEST(SafetensorsHostile, RefusesOffsetsThatDoNotStartAtZero) {
  EXPECT_SAYS(refusal("{" + entry("a", "[1]", "[4,8]") + "}", "12345678"), "hole");
}

TEST(SafetensorsHostile, RefusesAHoleBetweenTensors) {
  EXPECT_SAYS(
      refusal("{" + entry("a", "[1]", "[0,4]") + "," + entry("b", "[1]", "[8,12]") + "}", "123456789012"),
      "hole");
}

TEST(SafetensorsHostile, RefusesOverlappingTensors) {
  EXPECT_SAYS(
      refusal("{" + entry("a", "[2]", "[0,8]") + "," + entry("b", "[2]", "[4,12]") + "}", "123456789012"),
      "overlap");
  EXPECT_SAYS(refusal("{" + entry("a", "[1]", "[0,4]") + "," + entry("b", "[1]", "[0,4]") + "}", "1234"),
              "overlap");
}

TEST(SafetensorsHostile, RefusesAnEndBeforeTheBegin) {
  EXPECT_SAYS(refusal("{" + entry("a", "[1]", "[4,0]") + "}", "1234"), "before they begin");
}

TEST(SafetensorsHostile, RefusesASizeThatDoesNotFollowFromTheShape) {
  EXPECT_SAYS(refusal("{" + entry("a", "[3]", "[0,8]") + "}", "12345678"), "expected 12");
  EXPECT_SAYS(refusal("{" + entry("a", "[]", "[0,8]") + "}", "12345678"), "expected 4");
  EXPECT_SAYS(refusal("{" + entry("a", "[0]", "[0,4]") + "}", "1234"), "expected 0");
}

TEST(SafetensorsHostile, RefusesAProductThatOverflows) {
  EXPECT_SAYS(refusal("{" + entry("a", "[4294967296,4294967296]", "[0,0]") + "}", ""), "more bytes than");
  EXPECT_SAYS(refusal("{" + entry("a", "[4611686018427387904,4,0]", "[0,0]") + "}", ""), "more bytes than");
  EXPECT_SAYS(refusal("{" + entry("a", "[4611686018427387904]", "[0,0]") + "}", ""), "more bytes than");
}

TEST(SafetensorsHostile, RefusesNumbersThatAreNoSizes) {
  EXPECT_SAYS(refusal("{" + entry("a", "[-1]", "[0,4]") + "}", "1234"), "whole numbers");
  EXPECT_SAYS(refusal("{" + entry("a", "[1.0]", "[0,4]") + "}", "1234"), "whole numbers");
  EXPECT_SAYS(refusal("{" + entry("a", "[true]", "[0,4]") + "}", "1234"), "whole numbers");
  EXPECT_SAYS(refusal("{" + entry("a", "[18446744073709551616]", "[0,4]") + "}", "1234"), "whole numbers");
  EXPECT_SAYS(refusal("{" + entry("a", "[9223372036854775808]", "[0,4]") + "}", "1234"), "too large");
  EXPECT_SAYS(refusal("{" + entry("a", "[1]", "[0,1e400]") + "}", "1234"), "not sound JSON");
  EXPECT_SAYS(refusal("{" + entry("a", "[1]", "[0,4,4]") + "}", "1234"), "expected 2");
}

TEST(SafetensorsHostile, RefusesMissingAndExtraBytes) {
  EXPECT_SAYS(refusal("{" + entry("a", "[2]", "[0,8]") + "}", "1234567"), "truncated");
  EXPECT_SAYS(refusal("{" + entry("a", "[2]", "[0,8]") + "}", "123456789"), "something follows");
  EXPECT_SAYS(refusal("{}", "x"), "something follows");
}

TEST(SafetensorsHostile, RefusesEntriesOfTheWrongForm) {
  EXPECT_SAYS(refusal(R"({"a":[]})", ""), "tensor \"a\"");
  EXPECT_SAYS(refusal(R"({"a":{"dtype":"F32","shape":[0]}})", ""), "not an object of");
  EXPECT_SAYS(refusal(R"({"a":{"dtype":1,"shape":[0],"data_offsets":[0,0]}})", ""), "dtype");
  EXPECT_SAYS(refusal(R"({"a":{"dtype":"F32","shape":0,"data_offsets":[0,0]}})", ""), "shape");
  EXPECT_SAYS(refusal(R"({"a":{"dtype":"F32","shape":[0],"data_offsets":null}})", ""), "data_offsets");
  EXPECT_SAYS(refusal(R"({"a":{"dtype":"F32","shape":[0],"data_offsets":[0,0],"x":1}})", ""),
              "not an object of");
}

TEST(SafetensorsHostile, RefusesDtypesThatItCannotCount) {
  EXPECT_SAYS(refusal(R"({"a":{"dtype":"F4","shape":[1],"data_offsets":[0,1]}})", "x"), "F4");
  EXPECT_SAYS(refusal(R"({"a":{"dtype":"f32","shape":[1],"data_offsets":[0,4]}})", "1234"), "not supported");
}

TEST(SafetensorsHostile, RefusesMetadataThatIsNotText) {
  EXPECT_SAYS(refusal(R"({"__metadata__":{"a":1}})", ""), "not a string");
  EXPECT_SAYS(refusal(R"({"__metadata__":"a"})", ""), "__metadata__");
}

TEST(SafetensorsHostile, RefusesNamesThatWouldSpoilALogOrAFile) {
  EXPECT_SAYS(refusal("{" + entry("a\\nb", "[0]", "[0,0]") + "}", ""), "control characters");
  EXPECT_SAYS(refusal("{" + entry("a\\u0000b", "[0]", "[0,0]") + "}", ""), "control characters");
  EXPECT_SAYS(refusal("{" + entry("", "[0]", "[0,0]") + "}", ""), "empty");
  EXPECT_SAYS(refusal("{" + entry(std::string(kMaxNameBytes + 1, 'x'), "[0]", "[0,0]") + "}", ""),
              "longer than");
  EXPECT_LT(refusal("{" + entry(std::string(100000, 'x'), "[0]", "[0,0]") + "}", "").size(), 1000U);
}

TEST(SafetensorsHostile, RefusesTooManyTensorsWithoutTakingLong) {
  std::string header = "{";
  for (std::size_t i = 0; i <= kMaxTensors; ++i) header += entry(std::to_string(i), "[0]", "[0,0]") + ",";
  header.back() = '}';
  EXPECT_SAYS(refusal(header, ""), "expected at most 200000");
}

TEST(SafetensorsHostile, RefusesTooManyDimensions) {
  EXPECT_SAYS(refusal("{" + entry("a", "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]", "[0,4]") + "}", "1234"),
              "dimensions");
}

TEST(SafetensorsHostile, RefusesWhatIsNotARegularFile) {
  const test::TemporaryDirectory directory;
  EXPECT_SAYS(message_of<ModelError>([&] { SafetensorsFile::open(directory.path()); }), "not a regular file");
  EXPECT_SAYS(message_of<ModelError>([&] { SafetensorsFile::open("/dev/null"); }), "not a regular file");
  EXPECT_SAYS(message_of<base::StorageError>([&] { SafetensorsFile::open(directory / "none"); }),
              "cannot be opened");
  test::write_file(directory / "empty", "");
  EXPECT_SAYS(message_of<ModelError>([&] { SafetensorsFile::open(directory / "empty"); }), "0 bytes");
}

TEST(SafetensorsHostile, NoticesAFileThatIsCutWhileInUse) {
  const test::TemporaryDirectory directory;
  test::write_file(directory / "a", safetensors_bytes("{" + entry("a", "[2]", "[0,8]") + "}", "12345678"));
  const auto file = SafetensorsFile::open(directory / "a");
  file.check_unchanged();
  std::filesystem::resize_file(directory / "a", 20);
  EXPECT_SAYS(message_of<ModelError>([&] { file.check_unchanged(); }), "truncated while in use");
}

// What a parse that succeeds promises, whatever the bytes were.
void check_promises(const SafetensorsHeader& header, std::size_t file_bytes) {
  std::size_t total = 0;
  for (const auto& [name, info] : header.tensors) {
    ASSERT_LE(info.begin, info.end);
    ASSERT_LE(header.data_start + info.end, file_bytes);
    ASSERT_EQ(info.end - info.begin, tensor_bytes(name, info.dtype, info.shape));
    total += info.end - info.begin;
  }
  ASSERT_EQ(header.data_start + total, file_bytes);
}

std::string mutate(std::string file, base::Random& random) {
  const auto place = [&] { return static_cast<std::size_t>(random.next_below(file.size())); };
  switch (random.next_below(6)) {
    case 0:
      file[place()] ^= static_cast<char>(1U << random.next_below(8));
      break;
    case 1:
      file.resize(place());
      break;
    case 2:
      file.insert(place(), 1, static_cast<char>(random.next_below(256)));
      break;
    case 3:
      file.erase(place(), 1);
      break;
    case 4:
      file[8 + random.next_below(200)] = "0123456789[]{},:\"\\-e."[random.next_below(21)];
      break;
    default:
      std::swap(file[place()], file[place()]);
      break;
  }
  return file;
}

TEST(SafetensorsHostile, MutatedFilesAreRefusedOrSound) {
  const std::string sound =
      safetensors_bytes(R"({"__metadata__":{"format":"pt"},)" + entry("first", "[2,3]", "[0,24]") + "," +
                            entry("second", "[4]", "[24,40]") + "," + entry("third", "[]", "[40,44]") + "," +
                            entry("none", "[0,7]", "[44,44]") + "}",
                        std::string(44, 'd'));
  base::Random random(1, base::stream_of("mutations"));
  int refused = 0;
  int accepted = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string file = sound;
    for (std::uint64_t k = random.next_below(4) + 1; k > 0 && file.size() > 220; --k)
      file = mutate(file, random);
    const std::vector<char> exact(file.begin(),
                                  file.end());  // no spare byte for a read beyond the end to hide in
    try {
      check_promises(parse_safetensors(as_bytes({exact.data(), exact.size()}), "mutant"), exact.size());
      ++accepted;
    } catch (const ModelError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 1000);
  EXPECT_GT(accepted, 100);
}

}  // namespace
}  // namespace retort::io
