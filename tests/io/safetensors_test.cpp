#include "retort/io/safetensors.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "files_for_tests.h"
#include "retort/base/error.h"
#include "retort/base/json.h"
#include "support/outside_data.h"
#include "support/temporary_directory.h"

namespace retort::io {
namespace {

using test::as_bytes;
using test::message_of;

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::vector<TensorToWrite> copy_of(const SafetensorsFile& file) {
  std::vector<TensorToWrite> tensors;
  for (const auto& [name, info] : file.tensors())
    tensors.push_back(tensor_of_bytes(name, info.dtype, info.shape, file.bytes(name)));
  return tensors;
}

TEST(Safetensors, AcceptsEmptyShapesScalarsAndSpaces) {
  const std::string header =
      " {\"s\":{\"dtype\":\"BF16\",\"shape\":[],\"data_offsets\":[0,2]},"
      "\"z\":{\"dtype\":\"F64\",\"shape\":[3,0],\"data_offsets\":[2,2]}} \n";
  const auto parsed = parse_safetensors(as_bytes(test::safetensors_bytes(header, "xy")), "weights");
  EXPECT_TRUE(parsed.tensors.at("s").shape.empty());
  EXPECT_EQ(parsed.tensors.at("z").begin, parsed.tensors.at("z").end);
  EXPECT_TRUE(parsed.metadata.empty());
  const auto null =
      parse_safetensors(test::as_bytes(test::safetensors_bytes(R"({"__metadata__":null})", "")), "w");
  EXPECT_TRUE(null.metadata.empty() && null.tensors.empty()) << "as other readers take it";
}

TEST(Safetensors, GivesBackWhatWasWritten) {
  const test::TemporaryDirectory directory;
  const std::vector<TensorToWrite> tensors{tensor_of_bytes("b", Dtype::f32, {2}, as_bytes("12345678")),
                                           tensor_of_bytes("a", Dtype::u8, {3}, as_bytes("abc")),
                                           tensor_of_bytes("c", Dtype::bf16, {0, 4}, {})};
  write_safetensors(directory / "x.safetensors", tensors, {{"made by", "a test"}});
  const auto file = SafetensorsFile::open(directory / "x.safetensors");
  EXPECT_EQ(text_of(file.bytes("a")), "abc");
  EXPECT_EQ(text_of(file.bytes("b")), "12345678");
  EXPECT_EQ(file.tensors().at("c").shape, (std::vector<std::int64_t>{0, 4}));
  EXPECT_EQ(file.metadata().at("made by"), "a test");
  EXPECT_EQ(file.metadata().at("format"), "pt");
  EXPECT_THROW(file.bytes("d"), base::ModelError);
}

TEST(Safetensors, WritesTheSameBytesWhateverTheOrderAndThePieces) {
  const test::TemporaryDirectory directory;
  const auto a = tensor_of_bytes("a", Dtype::f32, {2}, as_bytes("12345678"));
  const auto b = tensor_of_bytes("b", Dtype::f16, {1}, as_bytes("xy"));
  auto pieces = a;
  pieces.produce = [](const ByteSink& sink) {
    sink(as_bytes("123"));
    sink({});
    sink(as_bytes("45678"));
  };
  write_safetensors(directory / "1", std::vector{a, b});
  write_safetensors(directory / "2", std::vector{b, pieces});
  const std::string content = base::read_file(directory / "1");
  EXPECT_EQ(content, base::read_file(directory / "2"));
  EXPECT_EQ(static_cast<unsigned char>(content[0]) % 8, 0);
}

TEST(Safetensors, LeavesNothingBehindWhenAProducerFails) {
  const test::TemporaryDirectory directory;
  auto tensor = tensor_of_bytes("a", Dtype::f32, {2}, as_bytes("1234567"));
  const auto write = [&] { write_safetensors(directory / "x", std::vector{tensor}); };
  EXPECT_NE(message_of<base::InternalError>(write).find("gives 7 bytes, expected 8"), std::string::npos);
  tensor = tensor_of_bytes("a", Dtype::f32, {2}, as_bytes("123456789"));
  EXPECT_NE(message_of<base::InternalError>(write).find("more than the announced 8"), std::string::npos);
  EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
}

TEST(Safetensors, RefusesToWriteANameTwice) {
  const test::TemporaryDirectory directory;
  const auto a = tensor_of_bytes("a", Dtype::f32, {0}, {});
  const auto also_a = tensor_of_bytes("a", Dtype::f16, {0}, {});
  EXPECT_THROW(write_safetensors(directory / "x", std::vector{a, also_a}), base::InternalError);
}

TEST(Safetensors, StaysValidWhenItMoves) {
  const test::TemporaryDirectory directory;
  write_safetensors(directory / "x", std::vector{tensor_of_bytes("a", Dtype::u8, {3}, as_bytes("abc"))});
  auto first = SafetensorsFile::open(directory / "x");
  const auto bytes = first.bytes("a");
  const SafetensorsFile second = std::move(first);
  EXPECT_EQ(text_of(bytes), "abc");
  EXPECT_EQ(second.bytes("a").data(), bytes.data());
}

TEST(SafetensorsOracle, ReadsWhatTheReferenceImplementationWrites) {
  const auto directory = test::oracles("io");
  const auto expected = base::parse_json(base::read_file(directory / "tensors.json"));
  const auto file = SafetensorsFile::open(directory / "tensors.safetensors");
  EXPECT_EQ(file.metadata().at("format"), "pt");
  ASSERT_EQ(file.tensors().size(), expected.size());
  ASSERT_GE(expected.size(), 12U);
  for (const auto& [name, tensor] : expected.items()) {
    const TensorInfo& info = file.tensors().at(name);
    EXPECT_EQ(io::name(info.dtype), tensor["dtype"].get<std::string>());
    EXPECT_EQ(info.shape, tensor["shape"].get<std::vector<std::int64_t>>());
    std::string hex;
    for (const std::byte b : file.bytes(name)) {
      hex += "0123456789abcdef"[std::to_integer<unsigned>(b) >> 4U];
      hex += "0123456789abcdef"[std::to_integer<unsigned>(b) & 15U];
    }
    EXPECT_EQ(hex, tensor["hex"].get<std::string>()) << name;
  }
}

TEST(SafetensorsOracle, WritesTheBytesOfTheReferenceImplementation) {
  const test::TemporaryDirectory directory;
  const auto reference = test::oracles("io") / "tensors.safetensors";
  write_safetensors(directory / "ours", copy_of(SafetensorsFile::open(reference)));
  EXPECT_EQ(base::read_file(directory / "ours"), base::read_file(reference));
}

TEST(Safetensors, RewritesTheEmbeddedModelByteForByte) {
  const test::TemporaryDirectory directory;
  const auto model = test::source() / "models" / "europa-5m" / "model.safetensors";
  write_safetensors(directory / "ours", copy_of(SafetensorsFile::open(model)));
  EXPECT_EQ(base::read_file(directory / "ours"), base::read_file(model));
}

}  // namespace
}  // namespace retort::io
