#include "retort/io/gguf_blocks.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "files_for_tests.h"
#include "retort/base/json.h"
#include "support/outside_data.h"

namespace retort::io {
namespace {

const base::Json& golden() {
  static const base::Json json =
      base::parse_json(base::read_file(test::source() / "tests" / "io" / "golden_gguf_blocks.json"));
  return json;
}

class GgufBlocks : public ::testing::TestWithParam<std::uint32_t> {};

TEST_P(GgufBlocks, HaveTheValuesOfGgufPyBitForBit) {
  const auto type = ggml_type(GetParam());
  ASSERT_TRUE(type.has_value());
  const auto& one = golden().at(std::string(name(*type)));
  const std::string blocks = test::from_hex(one.at("blocks")), expected = test::from_hex(one.at("values"));
  std::vector<float> values(expected.size() / sizeof(float));
  ASSERT_GT(values.size(), 31U);
  dequantise(*type, test::as_bytes(blocks), values);
  for (std::size_t i = 0; i < values.size(); ++i)
    EXPECT_EQ(std::memcmp(&values[i], expected.data() + i * sizeof(float), sizeof(float)), 0)
        << "value " << i << " is " << values[i];
}

INSTANTIATE_TEST_SUITE_P(All, GgufBlocks, ::testing::Values(0, 1, 30, 2, 3, 6, 7, 8, 10, 11, 12, 13, 14),
                         [](const auto& one) { return ggml_name(one.param); });

TEST(GgufTypes, AreNamedWhetherTheyAreReadOrNot) {
  EXPECT_EQ(ggml_name(12), "Q4_K");
  EXPECT_EQ(ggml_name(23), "IQ4_XS");
  EXPECT_EQ(ggml_name(999), "type 999");
  EXPECT_FALSE(ggml_type(23).has_value());
}

}  // namespace
}  // namespace retort::io
