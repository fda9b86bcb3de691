#include "retort/architecture/hf_config.h"

#include <algorithm>
#include <filesystem>

#include "configs_for_tests.h"
#include "retort/architecture/counts.h"
#include "retort/base/error.h"
#include "support/message_of.h"
#include "support/outside_data.h"

namespace retort::architecture {
namespace {

using base::Json;
using test::small_config;

TEST(HfConfig, ReadsBackWhatItWrites) {
  Config config = small_config(true);
  config.ropes.front().theta = 1234567.5;
  config.rms_norm_eps = 1e-5;
  config.initializer_range = 0.015;
  config.eos_token_ids = {2, 5};
  config.bos_token_ids = {};
  config.pad_token_id = 0;
  for (const char* architecture : {"LlamaForCausalLM", "MistralForCausalLM"}) {
    config.architecture = architecture;
    std::vector<std::string> notes;
    EXPECT_EQ(parse_hf_config(hf_config_json(config), "text", &notes), config);
    EXPECT_TRUE(notes.empty());
  }
}

TEST(HfConfig, WritesBothSpellings) {
  const Json json = Json::parse(hf_config_json(small_config(), {.dtype = io::Dtype::f16, .additional = {}}));
  EXPECT_EQ(json["dtype"], "float16");
  EXPECT_EQ(json["torch_dtype"], "float16");
  EXPECT_EQ(json["rope_theta"], 10000.0);
  EXPECT_TRUE(json["rope_scaling"].is_null());
  EXPECT_EQ(json["rope_parameters"]["rope_theta"], 10000.0);
  EXPECT_EQ(json["rope_parameters"]["rope_type"], "default");
  EXPECT_EQ(json["architectures"][0], "LlamaForCausalLM");
  EXPECT_EQ(json["model_type"], "llama");
  EXPECT_EQ(json["head_dim"], 8);
}

TEST(HfConfig, CarriesFurtherKeys) {
  const Json json = Json::parse(hf_config_json(small_config(), {.additional = Json{{"retort", {{"a", 1}}}}}));
  EXPECT_EQ(json["retort"]["a"], 1);
}

Config config_of_different_blocks() {
  Config config = small_config();
  config.blocks.resize(5, config.blocks.front());
  config.blocks[1].mlp = DenseMlp{44};
  config.blocks[2].attention.reset();
  config.blocks[3].mlp = std::monostate{};
  config.blocks[4].attention = Attention{2, 1, 8};
  return config;
}

TEST(HfConfig, DescribesBlocksThatDifferInAFormOfItsOwn) {
  for (const char* architecture : {"LlamaForCausalLM", "MistralForCausalLM"}) {
    Config config = config_of_different_blocks();
    config.architecture = architecture;
    const std::string text = hf_config_json(config);
    std::vector<std::string> notes;
    EXPECT_EQ(parse_hf_config(text, "config.json", &notes), config);
    EXPECT_TRUE(notes.empty()) << notes.front();
    const Json json = Json::parse(text);
    EXPECT_EQ(json["architectures"], Json::array({"RetortForCausalLM"}));
    EXPECT_EQ(json["model_type"], "retort");
    EXPECT_EQ(json["intermediate_size"], Json::array({88, 44, 88, 0, 88}));
    EXPECT_EQ(json["num_attention_heads"], Json::array({4, 4, 0, 4, 2}));
    EXPECT_EQ(json["num_key_value_heads"], Json::array({2, 2, 0, 2, 1}));
    EXPECT_EQ(json["head_dim"], Json::array({8, 8, 0, 8, 8}));
  }
}

TEST(HfConfig, DescribesModelsWithoutAnyAttentionOrMlp) {
  Config config = small_config();
  for (auto& block : config.blocks) block.attention.reset();
  EXPECT_EQ(parse_hf_config(hf_config_json(config), "config.json"), config);
  config = small_config();
  for (auto& block : config.blocks) block.mlp = std::monostate{};
  EXPECT_EQ(parse_hf_config(hf_config_json(config), "config.json"), config);
}

TEST(HfConfig, WillNotWriteExperts) {
  Config config = small_config();
  config.blocks[1].mlp = ExpertsMlp{4, 2, 88};
  EXPECT_THROW(hf_config_json(config), base::InternalError);
}

TEST(HfConfig, ReadsBlocksThatDifferAsEarlierVersionsWroteThem) {
  const Config config = config_of_different_blocks();
  Json json = Json::parse(hf_config_json(small_config()));
  json["num_hidden_layers"] = 5;
  json["per_layer_config"] = {{"1", {{"intermediate_size", 44}}},
                              {"2", {{"skip", {"attention"}}}},
                              {"3", {{"skip", {"mlp"}}}},
                              {"4", {{"num_attention_heads", 2}, {"num_key_value_heads", 1}}}};
  EXPECT_EQ(parse_hf_config(json.dump(), "config.json"), config);
}

TEST(HfConfig, RefusesListsThatDoNotDescribeEveryLayer) {
  const auto refusal = [](const char* key, const Json& value) {
    Json json = Json::parse(hf_config_json(config_of_different_blocks()));
    json[key] = value;
    return test::message_of<base::ModelError>([&] { parse_hf_config(json.dump(), "config.json"); });
  };
  EXPECT_SAYS(refusal("intermediate_size", 88), "expected a list of 5 numbers");
  EXPECT_SAYS(refusal("intermediate_size", {88, 88}), "expected a list of 5 numbers");
  EXPECT_SAYS(refusal("intermediate_size", {88, 88, "x", 88, 88}), "whole numbers");
  EXPECT_SAYS(refusal("intermediate_size", {88, -1, 88, 88, 88}), "intermediate_size is -1");
  EXPECT_SAYS(refusal("num_attention_heads", {4, 4, 0, 4, 0}), "num_attention_heads is 0");
  EXPECT_SAYS(refusal("head_dim", {8, 8, 8, 8, 8}), "num_attention_heads is 0");
  EXPECT_SAYS(refusal("base_model_type", nullptr), "lacks base_model_type");
  EXPECT_SAYS(refusal("base_model_type", "gemma"), "gemma");
  EXPECT_SAYS(refusal("per_layer_config", {{"0", {{"intermediate_size", 8}}}}), "per_layer_config");
  EXPECT_SAYS(refusal("architectures", Json::array({"LlamaForCausalLM", "RetortForCausalLM"})),
              "architectures");
}

TEST(HfConfig, RefusesLayersThatItDoesNotUnderstand) {
  const auto refusal = [](const Json& layers) {
    Json json = Json::parse(hf_config_json(small_config()));
    json["per_layer_config"] = layers;
    return test::message_of<base::ModelError>([&] { parse_hf_config(json.dump(), "config.json"); });
  };
  EXPECT_SAYS(refusal({{"99", Json::object()}}), "99");
  EXPECT_SAYS(refusal({{"one", Json::object()}}), "one");
  EXPECT_SAYS(refusal({{"0", 3}}), "expected an object");
  EXPECT_SAYS(refusal(7), "expected an object");
  EXPECT_SAYS(refusal({{"0", {{"sliding_window", 4}}}}), "sliding_window");
  EXPECT_SAYS(refusal({{"0", {{"skip", {"norm"}}}}}), "norm");
  EXPECT_SAYS(refusal({{"0", {{"skip", "mlp"}}}}), "list");
  EXPECT_SAYS(refusal({{"0", {{"intermediate_size", "wide"}}}}), "whole number");
  EXPECT_NE(refusal({{"0", {{"intermediate_size", -4}}}}), "");
  EXPECT_NE(refusal({{"0", {{"num_key_value_heads", 3}}}}), "");
}

TEST(HfConfig, NotesWhatItDoesNotKnow) {
  Json json = Json::parse(hf_config_json(small_config()));
  json["new_key"] = 1;
  json["_internal"] = 1;
  json["attention_dropout"] = 0.1;
  std::vector<std::string> notes;
  parse_hf_config(json.dump(), "text", &notes);
  ASSERT_EQ(notes.size(), 2U);
  EXPECT_SAYS(notes[0], "new_key");
  EXPECT_SAYS(notes[1], "attention_dropout");
}

TEST(HfConfig, TakesPadMinusOneForNone) {
  Json json = Json::parse(hf_config_json(small_config()));
  json["pad_token_id"] = -1;
  EXPECT_FALSE(parse_hf_config(json.dump(), "text").pad_token_id);
}

Config from_oracle(const Json& expected) {
  Config config;
  config.architecture = expected["architecture"];
  config.vocab_size = expected["vocab_size"];
  config.hidden_size = expected["hidden_size"];
  config.max_position_embeddings = expected["context"];
  config.rms_norm_eps = expected["eps"];
  config.ropes.front().theta = expected["theta"];
  config.tie_word_embeddings = expected["tied"];
  config.bos_token_ids = expected["bos"].get<std::vector<std::int32_t>>();
  config.eos_token_ids = expected["eos"].get<std::vector<std::int32_t>>();
  if (!expected["pad"].is_null()) config.pad_token_id = expected["pad"].get<std::int32_t>();
  const Block block{Attention{expected["heads"], expected["kv_heads"], expected["head_dim"]},
                    DenseMlp{expected["width"]}};
  config.blocks.assign(expected["blocks"].get<std::size_t>(), block);
  if (!expected["window"].is_null())
    for (Block& windowed : config.blocks) windowed.attention->kind.window = expected["window"];
  return config;
}

TEST(HfConfigOracle, UnderstandsEveryConfigurationAsTransformersDoes) {
  int cases = 0;
  for (const auto& entry : std::filesystem::directory_iterator(test::oracles("architecture") / "cases")) {
    SCOPED_TRACE(entry.path().filename().string());
    const Json expected = base::parse_json(base::read_file(entry.path() / "expected.json"));
    std::vector<std::string> notes;
    const Config config = read_config(entry.path(), &notes);
    EXPECT_EQ(config, from_oracle(expected));
    EXPECT_EQ(num_parameters(config), expected["parameters"].get<std::int64_t>());
    EXPECT_TRUE(notes.empty()) << notes.front();
    ++cases;
  }
  EXPECT_GE(cases, 17);
}

}  // namespace
}  // namespace retort::architecture
