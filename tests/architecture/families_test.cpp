#include "retort/architecture/families.h"

#include "configs_for_tests.h"
#include "retort/architecture/hf_config.h"
#include "retort/base/error.h"

namespace retort::architecture {
namespace {

using base::Json;
using test::message_of;
using test::small_config;

// transformers refuses a Llama of this shape; tests/eval/transformers_loads_pruned_test.py loads all of them.
TEST(Families, WritesALlamaWhoseHeadsDoNotDivideItsHiddenSizeAsTheSameMistral) {
  Config config = small_config(true);
  config.hidden_size = 33;
  config.ropes.front().theta = 5e5;
  const Json json = Json::parse(hf_config_json(config));
  EXPECT_EQ(json["architectures"], Json::array({"MistralForCausalLM"}));
  EXPECT_EQ(json["model_type"], "mistral");
  ASSERT_TRUE(json.contains("sliding_window"));
  EXPECT_TRUE(json["sliding_window"].is_null());
  EXPECT_EQ(json["head_dim"], 8);
  EXPECT_FALSE(json.contains("attention_bias"));
  Config again = parse_hf_config(json.dump(), "config.json");
  EXPECT_EQ(again.architecture, "MistralForCausalLM");
  again.architecture = config.architecture;
  EXPECT_EQ(again, config);
}

TEST(Families, KeepsTheNameOfAModelThatItsFamilyCanSay) {
  for (const char* architecture : {"LlamaForCausalLM", "MistralForCausalLM", "MinistralForCausalLM"}) {
    Config config = small_config();
    config.architecture = architecture;
    const Family& family = family_of(architecture);
    EXPECT_EQ(&written_family(config), &family);
    EXPECT_EQ(Json::parse(hf_config_json(config))["model_type"], family.model_type);
  }
}

TEST(Families, RefusesToWriteAnArchitectureThatIsNotInTheTable) {
  for (const bool uniform : {true, false}) {
    Config config = small_config();
    config.architecture = "FalconForCausalLM";
    if (!uniform) config.blocks[1].mlp = DenseMlp{8};
    const auto message = message_of<base::ModelError>([&] { hf_config_json(config); });
    EXPECT_SAYS(message, "FalconForCausalLM");
    EXPECT_SAYS(message, supported_architectures());
  }
}

}  // namespace
}  // namespace retort::architecture
