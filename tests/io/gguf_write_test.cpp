// The bytes of a written file against a writer that knows nothing of ours, and what is refused.
#include "retort/io/gguf_write.h"

#include <gtest/gtest.h>

#include <array>

#include "retort/base/error.h"
#include "retort/io/gguf.h"
#include "retort/io/gguf_names.h"
#include "retort/io/gguf_parts.h"
#include "support/gguf_writer.h"
#include "support/message_of.h"
#include "support/temporary_directory.h"

namespace retort {
namespace {

namespace fs = std::filesystem;
using io::GgmlType;

constexpr std::array<float, 6> kValues{1, -2, 3, 0.5F, -0.25F, 6};

io::GgufTensorToWrite tensor_of_values(const std::string& name) {
  return {name, GgmlType::f32, {2, 3}, [](const io::ByteSink& sink) {
            const auto bytes = std::as_bytes(std::span(kValues));
            sink(bytes.first(8));
            sink(bytes.subspan(8));
          }};
}

io::GgufEntries entries_of_all_kinds() {
  return {{"general.architecture", std::string("llama")},
          {"a.count", std::uint32_t{7}},
          {"a.number", 0.5F},
          {"a.flag", true},
          {"a.texts", std::vector<std::string>{"", "zwei"}},
          {"a.reals", std::vector<float>{1.5F, -2}},
          {"a.integers", std::vector<std::int32_t>{-1, 2}}};
}

TEST(WriteGguf, GivesTheBytesOfAnotherWriter) {
  const test::TemporaryDirectory directory;
  const auto path = directory.path() / "a.gguf";
  io::write_gguf(path, entries_of_all_kinds(), std::array{tensor_of_values("one"), tensor_of_values("two")});

  test::GgufWriter other;
  other.text("general.architecture", "llama");
  other.number("a.count", 7);
  other.real("a.number", 0.5F);
  other.flag("a.flag", true);
  other.texts("a.texts", {"", "zwei"});
  other.reals("a.reals", {1.5F, -2});
  other.integers("a.integers", {-1, 2});
  const auto values = test::bytes_of_values(std::vector<float>(kValues.begin(), kValues.end()));
  other.tensor("one", {3, 2}, 0, values);
  other.tensor("two", {3, 2}, 0, values);
  EXPECT_EQ(base::read_file(path), other.bytes());
}

TEST(WriteGguf, ReadsBack) {
  const test::TemporaryDirectory directory;
  const auto path = directory.path() / "a.gguf";
  io::write_gguf(path, entries_of_all_kinds(), std::array{tensor_of_values("one")});
  const auto file = io::GgufFile::open(path);
  EXPECT_EQ(file.metadata().at("a.texts"), (base::Json{"", "zwei"}));
  EXPECT_EQ(file.metadata().at("a.integers"), (base::Json{-1, 2}));
  const auto& tensor = file.tensors().at("one");
  EXPECT_EQ(tensor.shape, (std::vector<std::int64_t>{2, 3}));
  EXPECT_TRUE(std::ranges::equal(file.bytes(tensor), std::as_bytes(std::span(kValues))));
}

TEST(WriteGguf, CutsIntoPartsThatAreReadAsOne) {
  const test::TemporaryDirectory directory;
  const auto path = directory.path() / "a.gguf";
  const std::array tensors{tensor_of_values("one"), tensor_of_values("two"), tensor_of_values("three")};
  const auto files = io::write_gguf_parts(path, entries_of_all_kinds(), tensors, 64);
  ASSERT_EQ(files.size(), 2U) << "two tensors of 32 bytes in the first";
  EXPECT_EQ(files.front().filename(), "a-00001-of-00002.gguf");
  const auto parts = io::open_gguf_parts(files.front());
  ASSERT_EQ(parts.size(), 2U);
  EXPECT_EQ(parts[0].tensors().size(), 2U);
  EXPECT_TRUE(parts[0].metadata().contains("a.count"));
  EXPECT_FALSE(parts[1].metadata().contains("a.count"));

  EXPECT_EQ(io::write_gguf_parts(path, entries_of_all_kinds(), tensors, 96), std::vector{path});
}

TEST(WriteGguf, RefusesARowThatIsNoWholeBlockAndWritesNothing) {
  const test::TemporaryDirectory directory;
  auto tensor = tensor_of_values("one");
  tensor.type = GgmlType::q8_0;
  const auto message = test::message_of<base::ModelError>(
      [&] { io::write_gguf(directory.path() / "a.gguf", {}, std::array{tensor}); });
  EXPECT_SAYS(message, "tensor \"one\" has rows of 3 values, expected a multiple of 32");
  EXPECT_TRUE(fs::is_empty(directory.path()));
}

TEST(WriteGguf, LeavesNothingOfATensorThatGivesTooLittle) {
  const test::TemporaryDirectory directory;
  auto tensor = tensor_of_values("one");
  tensor.produce = [](const io::ByteSink& sink) { sink(std::as_bytes(std::span(kValues)).first(8)); };
  const auto message = test::message_of<base::InternalError>(
      [&] { io::write_gguf(directory.path() / "a.gguf", {}, std::array{tensor}); });
  EXPECT_SAYS(message, "gives 8 bytes, expected 24");
  EXPECT_TRUE(fs::is_empty(directory.path()));
}

// By which llama.cpp chooses how special tokens take spaces.
TEST(WriteGguf, NamesAModelAsLlamaCppIsToTreatIt) {
  const auto row = [](std::string_view name) {
    return *std::ranges::find(io::kGgufArchitectures, name, &io::GgufArchitecture::name);
  };
  const auto all = [](std::string_view) { return true; };
  const auto none = [](std::string_view) { return false; };
  EXPECT_EQ(io::gguf_model_name(row("phi3"), "mine", all), "phi-3");
  EXPECT_EQ(io::gguf_model_name(row("phi3"), "mine", none), "mine");
  EXPECT_EQ(io::gguf_model_name(row("phi3"), "My-Phi-3-mini", none), "model");
  EXPECT_EQ(io::gguf_model_name(row("llama"), "like-phi3", all), "model");
  EXPECT_EQ(io::gguf_model_name(row("llama"), "student", all), "student");
}

TEST(WriteGguf, TakesNoNameTwice) {
  const test::TemporaryDirectory directory;
  const auto write = [&](const io::GgufEntries& entries, const std::vector<io::GgufTensorToWrite>& tensors) {
    return test::message_of<base::InternalError>(
        [&] { io::write_gguf(directory.path() / "a.gguf", entries, tensors); });
  };
  EXPECT_SAYS(write({}, {tensor_of_values("one"), tensor_of_values("one")}), "\"one\" is given twice");
  EXPECT_SAYS(write({{"a", 1.0F}, {"a", 2.0F}}, {}), "\"a\" is given twice");
}

}  // namespace
}  // namespace retort
