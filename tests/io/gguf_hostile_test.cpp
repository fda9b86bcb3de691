#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <utility>

#include "files_for_tests.h"
#include "retort/base/error.h"
#include "retort/base/json.h"
#include "retort/base/random.h"
#include "retort/io/gguf.h"
#include "retort/io/model_directory.h"
#include "retort/io/tokenizer_file.h"
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

TEST(GgufHostile, RefusesListsThatHaveTooManyEntriesTogether) {
  const auto second_list = [](std::uint64_t count) {
    GgufWriter file;
    file.integers("first", {1, 2, 3});
    file.raw("second", 9, little_endian(std::uint32_t{0}) + little_endian(count));
    return refusal(file);
  };
  EXPECT_SAYS(second_list(kMaxGgufEntries - 3), "a metadata list at byte");
  EXPECT_SAYS(
      second_list(kMaxGgufEntries - 2),
      "metadata \"second\" claims 8388606 entries, expected at most 8388605, as all lists together may "
      "have 8388608; the file is damaged");
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
  file = {};
  file.number("general.\xFF", 1);
  EXPECT_SAYS(refusal(file), R"(metadata key 0 is "general.\xff", expected printable text)");
  file = {};
  file.tensor("a\xFF", {8}, 0, std::string(32, 'x'));
  EXPECT_SAYS(refusal(file), R"(a tensor is named "a\xff")");
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
  file.texts("general.alignment", {"\xFF"});
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

std::string refusal_of_model(const GgufWriter& file) {
  const test::TemporaryDirectory directory;
  test::write_file(directory / "a.gguf", file.bytes());
  return message_of<ModelError>([&] { ModelDirectory::open(directory / "a.gguf"); });
}

// config.json would say null for it, which means that the key is absent.
TEST(GgufHostile, RefusesNumbersThatAreNotFinite) {
  for (const float value : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()})
    for (const char* key : {"llama.rope.freq_base", "llama.rope.scaling.factor"}) {
      auto file = test::tiny_gguf_metadata();
      test::add_tiny_tensors(file);
      file.real(key, value);
      const auto message = refusal_of_model(file);
      EXPECT_SAYS(message, key);
      EXPECT_SAYS(message, value > 0 ? "is \"inf\", expected a number" : "is \"nan\", expected a number");
    }
}

TEST(GgufHostile, RefusesListsThatWouldMakeAHugeConfiguration) {
  constexpr std::size_t kMany = 70'000;
  auto file = test::tiny_gguf_metadata("gemma3");
  test::add_tiny_tensors(file);
  file.integers("gemma3.attention.sliding_window_pattern", std::vector<std::int32_t>(kMany, 1));
  EXPECT_SAYS(refusal_of_model(file), "sliding_window_pattern\" has 70000 entries, expected at most 65536");
  file = test::tiny_gguf_metadata("phi3");
  test::add_tiny_tensors(file);
  file.tensor("rope_factors_long.weight", {kMany}, 0, std::string(kMany * 4, 'x'));
  EXPECT_SAYS(refusal_of_model(file),
              "\"rope_factors_long.weight\" has 70000 values, expected at most 65536");
}

// Each of them is looked for among those before it where Json adds it.
TEST(GgufHostile, ReadsAsManyUnknownKeysAsThereMayBeAtOnce) {
  const test::TemporaryDirectory directory;
  auto file = test::tiny_gguf_metadata();
  test::add_tiny_tensors(file);
  for (int i = 0; i < 60'000; ++i) file.number("llama.k" + std::to_string(i), 1);
  test::write_file(directory / "a.gguf", file.bytes());
  const auto model = ModelDirectory::open(directory / "a.gguf");
  EXPECT_EQ(base::parse_json(model.config_text(), {.max_bytes = 1 << 24}).at("llama.k59999"), 1);
}

std::string refusal_of_pieces(const std::vector<std::string>& tokens) {
  const test::TemporaryDirectory directory;
  GgufWriter file;
  file.text("tokenizer.ggml.model", "llama");
  file.texts("tokenizer.ggml.tokens", tokens);
  file.reals("tokenizer.ggml.scores", std::vector<float>(tokens.size()));
  test::write_file(directory / "a.gguf", file.bytes());
  return message_of<ModelError>([&] { (void)read_tokenizer_text(directory / "a.gguf", 1 << 20); });
}

// Less than a megabyte of them, whose merges would take gigabytes; and tokens that would take hours.
TEST(GgufHostile, RefusesTokensThatAreMadeOfEachOtherInTooManyWays) {
  std::vector<std::string> tokens;
  for (std::size_t i = 1; i <= 1200; ++i) tokens.emplace_back(i, 'a');
  EXPECT_SAYS(refusal_of_pieces(tokens), "its tokens can be made of each other in more than 134217728 bytes");
  EXPECT_SAYS(refusal_of_pieces({"a", std::string(10'000'000, 'b')}),
              "its tokens can be made of each other in more than 8589934592 bytes");
}

// Another process makes the file shorter, as one does that downloads it again.
void cut_from_outside(const base::Path& path, off_t size) {
  const pid_t other = ::fork();
  if (other == 0) ::_exit(::truncate(path.c_str(), size) == 0 ? 0 : 1);
  int status = -1;
  ASSERT_EQ(::waitpid(other, &status, 0), other);
  ASSERT_EQ(status, 0);
}

// Several pages of data: one that the file no longer has would end the process where it is read.
TEST(GgufHostile, NoticesAFileThatIsCutWhileInUse) {
  const test::TemporaryDirectory directory;
  auto file = test::tiny_gguf_metadata();
  file.tensor("token_embd.weight", {32, 2048}, 8, std::string(std::size_t{2048} * 34, 'x'));
  file.tensor("output_norm.weight", {8192}, 0, std::string(std::size_t{8192} * 4, 'x'));
  test::write_file(directory / "a.gguf", file.bytes());
  const auto model = ModelDirectory::open(directory / "a.gguf");
  const auto made = model.find("model.embed_tokens.weight");
  cut_from_outside(directory / "a.gguf", 4000);
  for (const std::string& name : model.names()) {
    const auto message = message_of<ModelError>([&] { model.find(name); });
    EXPECT_SAYS(message, "a.gguf: is now 4000 bytes, expected ");
    EXPECT_SAYS(message, "truncated while in use, start again with a complete file");
  }
  const auto rows = std::size_t{2048}, row_bytes = made.bytes.size() / rows;
  EXPECT_EQ(row_bytes, 128U);
  EXPECT_TRUE(std::ranges::equal(made.bytes.first(row_bytes), made.bytes.last(row_bytes)))
      << "values that were made stay";
  EXPECT_EQ(model.header("model.norm.weight").shape[0], 8192) << "the header was read when it was opened";
}

TEST(GgufHostile, GoesOnWithAFileThatIsReplacedWhileInUse) {
  const test::TemporaryDirectory directory;
  auto file = test::tiny_gguf_metadata();
  test::add_tiny_tensors(file);
  test::write_file(directory / "a.gguf", file.bytes());
  const auto model = ModelDirectory::open(directory / "a.gguf");
  test::write_file(directory / "b.gguf", "another and shorter file");
  std::filesystem::rename(directory / "b.gguf", directory / "a.gguf");
  EXPECT_EQ(model.find("model.norm.weight").bytes.size(), 16U);
}

// A model with a tokenizer and tensors of six types, whose file ends with its last tensor.
GgufWriter model_of_many_types() {
  auto file = test::tiny_gguf_metadata();
  test::add_tiny_tokenizer(file);
  file.text("tokenizer.chat_template", "{{ messages }}");
  file.flag("tokenizer.ggml.add_bos_token", true);
  file.real("llama.rope.freq_base", 10000);
  file.tensor("token_embd.weight", {32, 6}, 8, std::string(std::size_t{6} * 34, '1'));
  file.tensor("output_norm.weight", {4}, 0, std::string(16, '2'));
  file.tensor("blk.0.attn_q.weight", {32, 4}, 3, std::string(std::size_t{4} * 20, '3'));
  file.tensor("blk.0.attn_k.weight", {4, 2}, 1, std::string(16, '4'));
  file.tensor("blk.0.ffn_gate.weight", {4, 8}, 30, std::string(64, '5'));
  file.tensor("blk.0.ffn_down.weight", {256, 1}, 14, std::string(210, '6'));
  file.tensor("blk.0.ffn_up.weight", {4, 8}, 0, std::string(128, '7'));
  return file;
}

// What a parse that succeeds promises, whatever the bytes were.
void check_promises(const GgufHeader& header, std::size_t file_bytes) {
  std::vector<std::pair<std::size_t, std::size_t>> places;
  for (const auto& [name, tensor] : header.tensors) {
    ASSERT_LE(tensor.size, file_bytes);
    ASSERT_LE(tensor.begin, file_bytes - tensor.size);
    ASSERT_LE(header.data_start, file_bytes - tensor.size - tensor.begin);
    places.emplace_back(tensor.begin, tensor.begin + tensor.size);
  }
  std::sort(places.begin(), places.end());
  for (std::size_t i = 1; i < places.size(); ++i) ASSERT_LE(places[i - 1].second, places[i].first);
}

// All that is read of a model, the values of its tensors and the files that travel with it included.
void read_all_of(const base::Path& path) {
  const auto model = ModelDirectory::open(path);
  (void)base::parse_json(model.config_text());
  for (const std::string& name : model.names()) {
    const auto view = model.find(name);
    std::size_t bytes = item_bytes(view.dtype);
    for (const std::int64_t extent : view.shape) bytes *= static_cast<std::size_t>(extent);
    ASSERT_EQ(view.bytes.size(), bytes) << name;
  }
  for (const auto& [key, value] : model.metadata()) (void)base::Json({{key, value}}).dump();
  (void)model.stored_types();
  (void)accompanying_files(path);
  (void)base::parse_json(read_tokenizer_text(path, 1 << 20).text);
}

TEST(GgufHostile, RefusesAModelThatIsCutAtAnyByte) {
  const test::TemporaryDirectory directory;
  const std::string whole = model_of_many_types().bytes();
  test::write_file(directory / "a.gguf", whole);
  read_all_of(directory / "a.gguf");
  for (std::size_t size = whole.size(); size-- > 0;) {
    std::filesystem::resize_file(directory / "a.gguf", size);
    const auto message = message_of<ModelError>([&] { read_all_of(directory / "a.gguf"); });
    ASSERT_NE(message.find("a.gguf: "), std::string::npos) << "cut to " << size << " bytes: " << message;
  }
}

// Counts, lengths, types and places are little-endian words of four or eight bytes.
std::string telling_word(base::Random& random) {
  constexpr std::uint64_t kTelling[] = {0,
                                        1,
                                        8,
                                        9,
                                        31,
                                        0x7FFFFFFF,
                                        0x80000000,
                                        0xFFFFFFFF,
                                        std::uint64_t{1} << 32,
                                        std::uint64_t{1} << 40,
                                        std::uint64_t{1} << 62,
                                        std::uint64_t{1} << 63,
                                        std::numeric_limits<std::uint64_t>::max() - 31,
                                        std::numeric_limits<std::uint64_t>::max()};
  const std::string word = little_endian(kTelling[random.next_below(std::size(kTelling))]);
  return word.substr(0, random.next_below(2) == 0 ? 4 : 8);
}

// Bytes that change in place leave all that follows where it was, so such a mutant is read further.
void change_in_place(std::string& file, base::Random& random) {
  const auto place = [&] { return static_cast<std::size_t>(random.next_below(file.size())); };
  const std::size_t at = place();
  switch (random.next_below(4)) {
    case 0:
      file[at] ^= static_cast<char>(1U << random.next_below(8));
      break;
    case 1:
      for (std::size_t i = at; i < std::min(at + 4, file.size()); ++i)
        file[i] = static_cast<char>(random.next_below(256));
      break;
    case 2: {
      const std::string word = telling_word(random);
      const std::size_t fits = std::min(word.size(), file.size() - at);
      file.replace(at, fits, word, 0, fits);
      break;
    }
    default:
      std::swap(file[at], file[place()]);
      break;
  }
}

void move_what_follows(std::string& file, base::Random& random) {
  const auto place = [&] { return static_cast<std::size_t>(random.next_below(file.size())); };
  const std::size_t at = place(), count = 1 + random.next_below(8);
  switch (random.next_below(4)) {
    case 0:
      for (std::size_t i = 0; i < count; ++i) file.insert(at, 1, static_cast<char>(random.next_below(256)));
      break;
    case 1:
      file.erase(at, count);
      break;
    case 2:
      file.resize(at);
      break;
    default:  // a piece once more, for keys and tensors that stand twice or in another order
      file.insert(at, file.substr(place(), 1 + random.next_below(100)));
      break;
  }
}

std::size_t most_memory() {
  struct rusage usage {};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::size_t>(usage.ru_maxrss) * 1024;
}

TEST(GgufHostile, MutatedFilesAreRefusedOrReadInLittleMemory) {
  constexpr std::size_t kMemory = std::size_t{512} << 20;  // the sanitizer keeps what was freed
  const test::TemporaryDirectory directory;
  const std::string sound = model_of_many_types().bytes();
  const std::size_t header_bytes = parse_gguf(test::as_bytes(sound), "sound").data_start;
  base::Random random(1, base::stream_of("gguf mutations"));
  const std::size_t before = most_memory();
  int refused = 0, parsed = 0, read = 0;
  for (int i = 0; i < 20000; ++i) {
    // The values may be anything, so only the header is changed.
    std::string header = sound.substr(0, header_bytes);
    const bool in_place = random.next_below(4) > 0;
    for (std::uint64_t k = random.next_below(4) + 1; k > 0 && header.size() > 100; --k)
      in_place ? change_in_place(header, random) : move_what_follows(header, random);
    const std::string file = header + sound.substr(header_bytes);
    const std::vector<char> exact(file.begin(), file.end());  // a read beyond the end has no spare byte
    try {
      check_promises(parse_gguf(test::as_bytes({exact.data(), exact.size()}), "mutant"), exact.size());
      ++parsed;
      test::write_file(directory / "a.gguf", file);
      read_all_of(directory / "a.gguf");
      ++read;
    } catch (const ModelError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 10000);
  EXPECT_GT(parsed, 1000);
  EXPECT_GT(read, 500);
  EXPECT_LT(most_memory() - before, kMemory);
}

}  // namespace
}  // namespace retort::io
