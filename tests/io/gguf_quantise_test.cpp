#include "retort/io/gguf_quantise.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "files_for_tests.h"
#include "retort/base/error.h"
#include "retort/base/json.h"
#include "support/outside_data.h"

namespace retort::io {
namespace {

using Values = std::vector<float>;

std::string blocks_of(GgmlType type, const Values& values) {
  std::string blocks(values.size() / block_of(type).values * block_of(type).bytes, '\0');
  quantise(type, values, {reinterpret_cast<std::byte*>(blocks.data()), blocks.size()});
  return blocks;
}

Values values_of(GgmlType type, const std::string& blocks) {
  Values values(blocks.size() / block_of(type).bytes * block_of(type).values);
  dequantise(type, test::as_bytes(blocks), values);
  return values;
}

Values there_and_back(GgmlType type, const Values& values) {
  return values_of(type, blocks_of(type, values));
}

Values floats(const std::string& bytes) {
  Values values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

Values normal_values(std::size_t count) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  Values values(count);
  for (float& value : values) value = normal(random);
  return values;
}

// Which of the blocks differ, in words; empty where none does.
std::string differing(GgmlType type, const std::string& found, const std::string& expected) {
  const std::size_t size = block_of(type).bytes;
  if (found.size() != expected.size()) return "another number of bytes";
  std::size_t first = 0, count = 0;
  for (std::size_t i = 0; i < found.size(); i += size)
    if (found.compare(i, size, expected, i, size) != 0 && count++ == 0) first = i / size;
  return count == 0 ? "" : base::join(count, " of ", found.size() / size, " blocks, the first is ", first);
}

std::string type_name(const ::testing::TestParamInfo<GgmlType>& one) {
  return std::string(name(one.param));
}

class GgufQuantise : public ::testing::TestWithParam<GgmlType> {};
class GgufQuantisePlain : public GgufQuantise {};   // as by gguf-py
class GgufQuantiseSmall : public GgufQuantise {};   // blocks of 32 values
class GgufQuantiseK : public GgufQuantise {};       // blocks of 256 values
class GgufQuantiseHalves : public GgufQuantise {};  // values or scales are halves

TEST_P(GgufQuantisePlain, MakesTheBlocksOfGgufPyBitForBit) {
  const auto folder = test::oracles("io") / "gguf_blocks";
  const Values values = floats(base::read_file(folder / "values"));
  ASSERT_GT(values.size(), 100'000U);
  const std::string expected = base::read_file(folder / std::string(name(GetParam())));
  EXPECT_EQ(differing(GetParam(), blocks_of(GetParam(), values), expected), "");
}

INSTANTIATE_TEST_SUITE_P(All, GgufQuantisePlain,
                         ::testing::Values(GgmlType::f32, GgmlType::f16, GgmlType::bf16, GgmlType::q4_0,
                                           GgmlType::q4_1, GgmlType::q5_0, GgmlType::q5_1, GgmlType::q8_0),
                         type_name);

TEST_P(GgufQuantiseK, MakesTheBlocksOfLlamaCppBitForBit) {
  const auto golden =
      base::parse_json(base::read_file(test::source() / "tests" / "io" / "golden_gguf_k_blocks.json"));
  std::size_t rows = 0;
  for (const auto& row : golden.at("rows")) {
    const Values values = floats(test::from_hex(row.at("values")));
    const std::string expected = test::from_hex(row.at(std::string(name(GetParam()))));
    EXPECT_EQ(differing(GetParam(), blocks_of(GetParam(), values), expected), "") << row.at("row");
    ++rows;
  }
  EXPECT_GT(rows, 10U);
}

INSTANTIATE_TEST_SUITE_P(All, GgufQuantiseK,
                         ::testing::Values(GgmlType::q4_k, GgmlType::q5_k, GgmlType::q6_k), type_name);

// The largest value of a block has the outermost quant, so scales are found again.
TEST_P(GgufQuantiseSmall, MakesTheSameBlocksOfTheirOwnValues) {
  const std::string blocks = blocks_of(GetParam(), normal_values(32 * 1000));
  EXPECT_EQ(differing(GetParam(), blocks_of(GetParam(), values_of(GetParam(), blocks)), blocks), "");
}

// A step is the scale; what a half rounds of it is at most the last of eleven bits of the largest value.
TEST_P(GgufQuantiseSmall, ErrsByHalfAStepAndOneWhereTheLastQuantIsMissing) {
  const GgmlType type = GetParam();
  const bool one_sided = type == GgmlType::q4_0 || type == GgmlType::q5_0;
  const float parts = type == GgmlType::q8_0   ? 127
                      : type == GgmlType::q4_0 ? 8
                      : type == GgmlType::q5_0 ? 16
                      : type == GgmlType::q4_1 ? 15
                                               : 31;
  const Values values = normal_values(32 * 1000), made = there_and_back(type, values);
  float largest_error = 0;
  for (std::size_t block = 0; block < values.size(); block += 32) {
    float least = values[block], most = values[block];
    for (std::size_t i = block; i < block + 32; ++i) {
      least = std::min(least, values[i]);
      most = std::max(most, values[i]);
    }
    const float largest = std::max(-least, most);
    const float range = type == GgmlType::q4_1 || type == GgmlType::q5_1 ? most - least : largest;
    const float bound = range / parts * (one_sided ? 1.0F : 0.5F) + range * 0x1p-11F + largest * 0x1p-11F;
    for (std::size_t i = block; i < block + 32; ++i) {
      const float error = std::abs(made[i] - values[i]);
      EXPECT_LE(error, bound) << "value " << i;
      largest_error = std::max(largest_error, error / bound);
    }
  }
  EXPECT_GT(largest_error, 0.8F);
}

INSTANTIATE_TEST_SUITE_P(All, GgufQuantiseSmall,
                         ::testing::Values(GgmlType::q4_0, GgmlType::q4_1, GgmlType::q5_0, GgmlType::q5_1,
                                           GgmlType::q8_0),
                         type_name);

float mean_error(GgmlType type, const Values& values) {
  const Values made = there_and_back(type, values);
  double squares = 0;
  for (std::size_t i = 0; i < values.size(); ++i) squares += std::pow(made[i] - values[i], 2);
  return static_cast<float>(std::sqrt(squares / static_cast<double>(values.size())));
}

TEST(GgufQuantiseTypes, ErrLessTheMoreBitsTheyHaveAndTheMoreTheySearch) {
  const Values values = normal_values(256 * 200);
  const auto error = [&](GgmlType type) { return mean_error(type, values); };
  EXPECT_LT(error(GgmlType::q4_k), error(GgmlType::q4_1));
  EXPECT_LT(error(GgmlType::q4_1), error(GgmlType::q4_0));
  EXPECT_LT(error(GgmlType::q5_k), error(GgmlType::q5_1));
  EXPECT_LT(error(GgmlType::q5_1), 0.6F * error(GgmlType::q4_k));
  EXPECT_LT(error(GgmlType::q6_k), 0.6F * error(GgmlType::q5_k));
  EXPECT_LT(error(GgmlType::q8_0), 0.5F * error(GgmlType::q6_k));
}

TEST_P(GgufQuantise, KeepsZeros) {
  for (const float value : there_and_back(GetParam(), Values(512, 0.0F))) EXPECT_EQ(value, 0);
}

TEST_P(GgufQuantise, RefusesWhatIsNotFiniteWithItsPlace) {
  for (const auto& [bad, word] : {std::pair{std::numeric_limits<float>::quiet_NaN(), "nan"},
                                  std::pair{-std::numeric_limits<float>::infinity(), "-inf"}}) {
    Values values = normal_values(512);
    values[300] = bad;
    const auto said = test::message_of<base::ModelError>([&] { blocks_of(GetParam(), values); });
    EXPECT_SAYS(said, base::join("value 300 is ", word));
    EXPECT_SAYS(said, name(GetParam()));
  }
}

INSTANTIATE_TEST_SUITE_P(All, GgufQuantise,
                         ::testing::Values(GgmlType::f32, GgmlType::f16, GgmlType::bf16, GgmlType::q4_0,
                                           GgmlType::q4_1, GgmlType::q5_0, GgmlType::q5_1, GgmlType::q8_0,
                                           GgmlType::q4_k, GgmlType::q5_k, GgmlType::q6_k),
                         type_name);

TEST_P(GgufQuantiseHalves, AreZeroForWhatIsTooSmall) {
  const Values values = normal_values(512);
  for (const float scale : {1e-12F, 1e-30F, 1e-38F, 1e-42F}) {
    Values small = values;
    for (float& value : small) value *= scale;
    for (const float value : there_and_back(GetParam(), small)) EXPECT_EQ(value, 0) << scale;
  }
}

TEST_P(GgufQuantiseHalves, RefuseWhatIsTooLarge) {
  for (const float large : {1e9F, 1e25F, std::numeric_limits<float>::max()}) {
    Values values = normal_values(512);
    values[300] = large;
    const std::size_t start = 300 / block_of(GetParam()).values * block_of(GetParam()).values;
    const auto said = test::message_of<base::ModelError>([&] { blocks_of(GetParam(), values); });
    EXPECT_SAYS(said, base::join("values from ", start, " on are too large for ", name(GetParam())));
  }
}

INSTANTIATE_TEST_SUITE_P(All, GgufQuantiseHalves,
                         ::testing::Values(GgmlType::f16, GgmlType::q4_0, GgmlType::q4_1, GgmlType::q5_0,
                                           GgmlType::q5_1, GgmlType::q8_0, GgmlType::q4_k, GgmlType::q5_k,
                                           GgmlType::q6_k),
                         type_name);

// The scale of such a block fits.
TEST(GgufQuantiseTypes, RefuseWhatLiesTooFarBelowZero) {
  for (const GgmlType type : {GgmlType::q4_1, GgmlType::q5_1, GgmlType::q4_k, GgmlType::q5_k})
    EXPECT_SAYS(test::message_of<base::ModelError>([&] { blocks_of(type, Values(256, -5e6F)); }), name(type));
}

// One over the scale is infinite.
TEST(GgufQuantiseTypes, HaveNothingButZerosForTheSmallestValues) {
  for (const auto& [type, halves] :
       {std::pair{GgmlType::q4_0, 1U}, std::pair{GgmlType::q4_1, 2U}, std::pair{GgmlType::q5_0, 1U},
        std::pair{GgmlType::q5_1, 2U}, std::pair{GgmlType::q8_0, 1U}}) {
    Values values(32, 1e-42F);
    values[3] = -1e-41F;
    const std::string quants = blocks_of(type, values).substr(2 * halves);
    EXPECT_EQ(quants, std::string(quants.size(), '\0')) << name(type);
  }
}

// The largest bfloat16 and what rounds beyond it.
TEST(GgufQuantiseTypes, RefuseWhatRoundsToAnInfiniteBfloat16) {
  EXPECT_EQ(there_and_back(GgmlType::bf16, {0x1.FEFFFEp127F, 1}), (Values{0x1.FEp127F, 1}));
  EXPECT_SAYS(test::message_of<base::ModelError>([] {
                blocks_of(GgmlType::bf16, {1, -0x1.FFp127F});
              }),
              "values from 1 on are too large for BF16");
}

TEST(GgufQuantiseTypes, TakeWholeBlocksAlone) {
  for (const GgmlType type : {GgmlType::q4_1, GgmlType::q8_0, GgmlType::q4_k, GgmlType::q6_k}) {
    const auto [count, bytes] = block_of(type);
    std::vector<std::byte> blocks(bytes);
    EXPECT_THROW(quantise(type, Values(count + 1), blocks), base::InternalError);
    EXPECT_THROW(quantise(type, Values(2 * count), blocks), base::InternalError);
  }
}

TEST(GgufQuantiseTypes, AreRefusedWhereTheyAreReadOnly) {
  for (const GgmlType type : {GgmlType::q2_k, GgmlType::q3_k})
    EXPECT_SAYS(test::message_of<base::UsageError>([&] { blocks_of(type, Values(256)); }), name(type));
}

// NumPy's answer depends on the machine.
TEST(GgufQuantiseTypes, TakeTheSignOfTheFirstOfZerosAsLeast) {
  Values values(32, 0.0F);
  values[0] = -0.0F;
  EXPECT_EQ(blocks_of(GgmlType::q4_1, values).substr(0, 4), std::string("\0\0\0\x80", 4));
  values[0] = 0.0F;
  values[1] = -0.0F;
  EXPECT_EQ(blocks_of(GgmlType::q5_1, values).substr(0, 4), std::string(4, '\0'));
}

TEST(Halves, AreWhatTheyWereOnTheWayThroughFloats) {
  for (std::uint32_t half = 0; half < 0x10000; ++half) {
    const bool number = (half & 0x7FFFU) <= 0x7C00U;
    const auto back = float_to_half(half_to_float(static_cast<std::uint16_t>(half)));
    if (number)
      EXPECT_EQ(back, half);
    else
      EXPECT_GT(back & 0x7FFFU, 0x7C00U);
  }
}

TEST(Halves, AreTheNearestAndOfTwoTheEvenOne) {
  EXPECT_EQ(float_to_half(1 + 0x1p-11F), 0x3C00);
  EXPECT_EQ(float_to_half(1 + 3 * 0x1p-11F), 0x3C02);
  EXPECT_EQ(float_to_half(std::nextafter(1 + 0x1p-11F, 2.0F)), 0x3C01);
  EXPECT_EQ(float_to_half(0x1p-25F), 0);
  EXPECT_EQ(float_to_half(std::nextafter(0x1p-25F, 1.0F)), 1);
  EXPECT_EQ(float_to_half(3 * 0x1p-25F), 2);
  EXPECT_EQ(float_to_half(std::nextafter(0x1p-14F, 0.0F)), 0x0400);
  EXPECT_EQ(float_to_half(65519.0F), 0x7BFF);
  EXPECT_EQ(float_to_half(65520.0F), 0x7C00);
  EXPECT_EQ(float_to_half(-1e30F), 0xFC00);
}

}  // namespace
}  // namespace retort::io
