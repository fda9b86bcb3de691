#include "retort/io/gguf_mixture.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "retort/base/error.h"
#include "retort/base/files.h"
#include "retort/base/json.h"
#include "support/outside_data.h"

namespace retort::io {
namespace {

using Shape = std::vector<std::int64_t>;

const base::Json& chosen_types() {
  static const base::Json json =
      base::parse_json(base::read_file(test::source() / "tests" / "io" / "golden_gguf_types.json"));
  return json;
}

// The types of a tensor that each block has; of another one it is one.
std::string types_of(GgufMixture mixture, const MixtureModel& model, std::string name, const Shape& shape) {
  const std::size_t star = name.find('*');
  if (star == std::string::npos) return std::string(io::name(type_in_mixture(mixture, model, name, shape)));
  std::vector<std::string> types;
  for (std::int64_t block = 0; block < model.blocks; ++block) {
    std::string one = name;
    one.replace(star, 1, std::to_string(block));
    types.emplace_back(io::name(type_in_mixture(mixture, model, one, shape)));
  }
  if (std::set<std::string>(types.begin(), types.end()).size() == 1) return types.front();
  std::string joined;
  for (const std::string& type : types) joined += (joined.empty() ? "" : " ") + type;
  return joined;
}

TEST(GgufMixture, HasTheTypesThatLlamaCppChooses) {
  std::size_t models = 0, compared = 0;
  for (const auto& json : chosen_types().at("models")) {
    const auto architecture = json.at("architecture").get<std::string>();
    const MixtureModel model{architecture, json.at("blocks"), json.at("heads"), json.at("kv_heads"),
                             json.at("tied")};
    ++models;
    for (const auto& [mixture_name, types] : json.at("types").items())
      for (const auto& [tensor, shape] : json.at("shapes").items()) {
        const auto mixture = parse_gguf_mixture(mixture_name);
        ASSERT_TRUE(mixture.has_value()) << mixture_name;
        const std::string expected = types.value(tensor, types.at("rest").get<std::string>());
        EXPECT_EQ(types_of(*mixture, model, tensor, shape.get<Shape>()), expected)
            << tensor << " of " << architecture << " with " << model.blocks << " blocks, " << mixture_name;
        ++compared;
      }
  }
  EXPECT_EQ(models, 14U);
  EXPECT_GT(compared, 1500U);
}

TEST(GgufMixture, IsCalledAsByLlamaCpp) {
  EXPECT_EQ(parse_gguf_mixture("q4_k_m"), GgufMixture::q4_k_m);
  EXPECT_EQ(parse_gguf_mixture("Q4_K_M"), GgufMixture::q4_k_m);
  EXPECT_FALSE(parse_gguf_mixture("q4_k").has_value());
  EXPECT_FALSE(parse_gguf_mixture("").has_value());
  EXPECT_EQ(name(GgufMixture::q6_k), "Q6_K");
  EXPECT_EQ(gguf_mixture_names(),
            "F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q4_K_S, Q4_K_M, Q5_K_S, Q5_K_M, Q6_K");
}

TEST(GgufMixture, HasTheFileTypeThatGgufPyKnows) {
  for (const auto& [text, number] : chosen_types().at("file_types").items())
    EXPECT_EQ(file_type(parse_gguf_mixture(text).value()), number.get<std::uint32_t>()) << text;
  EXPECT_EQ(chosen_types().at("file_types").size(), 13U);
}

TEST(GgufMixture, RefusesABlockThatTheModelDoesNotHave) {
  const MixtureModel model{"llama", 4, 8, 2, false};
  const Shape shape{512, 512};
  for (const char* tensor : {"blk.4.attn_v.weight", "attn_v.weight", "blk.-1.ffn_down.weight"})
    EXPECT_THROW(type_in_mixture(GgufMixture::q4_k_m, model, tensor, shape), base::InternalError) << tensor;
}

}  // namespace
}  // namespace retort::io
