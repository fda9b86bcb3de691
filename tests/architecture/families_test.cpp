#include "retort/architecture/families.h"

#include "configs_for_tests.h"
#include "retort/architecture/description.h"
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

// A small model of a family, as its table says where config.json is silent.
Config made_of(const char* architecture) {
  const Family& family = family_of(architecture);
  Json json = {{"architectures", {family.architecture}},
               {"model_type", family.model_type},
               {"vocab_size", 96},
               {"hidden_size", 32},
               {"intermediate_size", 48},
               {"num_hidden_layers", 4},
               {"num_attention_heads", 4},
               {"num_key_value_heads", 2},
               {"head_dim", 8},
               {"max_position_embeddings", 64},
               {"bos_token_id", 1},
               {"eos_token_id", 2},
               {"pad_token_id", 0}};
  return parse_hf_config(json.dump(), "config.json");
}

TEST(Families, ComeBackFromWhatTheyWriteWithoutKeysOfOthers) {
  for (const Family* family : families()) {
    SCOPED_TRACE(family->architecture);
    const Config config = made_of(family->architecture);
    std::vector<std::string> notes;
    const std::string text = hf_config_json(config);
    EXPECT_EQ(parse_hf_config(text, "config.json", &notes), config);
    EXPECT_TRUE(notes.empty()) << notes.front();
    Config different = config;
    different.blocks[2].mlp = std::monostate{};
    different.blocks[1].attention.reset();
    EXPECT_EQ(parse_hf_config(hf_config_json(different), "config.json"), different);
  }
}

TEST(Families, TellWhatLayersComputeWhereNoListSaysSo) {
  const auto windows = [](const char* architecture) {
    std::string list;
    for (const Block& block : made_of(architecture).blocks) list += block.attention->kind.window ? 'w' : '.';
    return list;
  };
  EXPECT_EQ(windows("LlamaForCausalLM"), "....");
  EXPECT_EQ(windows("MistralForCausalLM"), "wwww");
  EXPECT_EQ(windows("Qwen2ForCausalLM"), "....");
  EXPECT_EQ(windows("Olmo3ForCausalLM"), "www.");
  EXPECT_EQ(windows("Gemma2ForCausalLM"), "w.w.");
  EXPECT_EQ(windows("Gemma3ForCausalLM"), "wwww");
  const auto blocks = made_of("SmolLM3ForCausalLM").blocks;
  EXPECT_TRUE(blocks[2].attention->kind.rope);
  EXPECT_FALSE(blocks[3].attention->kind.rope);
}

TEST(Families, SayWhichPartsStayAndWhy) {
  EXPECT_EQ(why_heads_stay(made_of("Qwen3ForCausalLM")), "");
  EXPECT_EQ(why_hidden_stays(made_of("Qwen3ForCausalLM")), "");
  EXPECT_SAYS(why_heads_stay(made_of("Olmo2ForCausalLM")), "across heads");
  EXPECT_SAYS(why_hidden_stays(made_of("Gemma2ForCausalLM")), "another hidden size");
}

TEST(Families, AreDescribedInWords) {
  std::string all;
  for (const auto& [what, text] : described(made_of("Gemma2ForCausalLM")))
    all += what + std::string(": ") + text + "\n";
  EXPECT_SAYS(all, "positions: rotary, theta 10000, in all layers");
  EXPECT_SAYS(all, "window of 4096 tokens in 2 of 4 layers");
  EXPECT_SAYS(all, "norms before and after; GeGLU");
  EXPECT_SAYS(all, "logits capped at 30");
}

// What a family of two kinds of layers says, with one key changed.
std::string refusal_of_layers(const char* key, const Json& value) {
  Json json = Json::parse(hf_config_json(made_of("Gemma3ForCausalLM")));
  json.erase("layer_types");
  json.erase("rope_scaling");
  json[key] = value;
  return message_of<base::ModelError>([&] { parse_hf_config(json.dump(), "config.json"); });
}

TEST(Families, RefuseWhatTransformersWouldReadOtherwise) {
  EXPECT_SAYS(refusal_of_layers("use_bidirectional_attention", true), "attention that looks ahead");
  EXPECT_SAYS(refusal_of_layers("sliding_window", nullptr),
              "some layers of a Gemma3ForCausalLM have a window");
  EXPECT_SAYS(refusal_of_layers("sliding_window_pattern", 0), "sliding_window_pattern is 0");
  EXPECT_SAYS(refusal_of_layers("rope_parameters", {{"rope_type", "linear"}, {"factor", 8.0}}),
              "one rotary embedding for both types of layers");
  EXPECT_SAYS(refusal_of_layers("rope_parameters", {{"full_attention", 5}}), "full_attention is");
}

TEST(Families, ReadThePlacesOfPositionsThatTransformersReads) {
  Json phi = Json::parse(hf_config_json(made_of("Phi3ForCausalLM")));
  phi["rope_scaling"] = nullptr;
  phi["rope_parameters"] = {{"rope_type", "longrope"},
                            {"original_max_position_embeddings", 32},
                            {"short_factor", {1.0, 1.0, 1.0, 1.0}},
                            {"long_factor", {2.0, 2.0, 2.0, 2.0}}};
  EXPECT_EQ(parse_hf_config(phi.dump(), "config.json").ropes.front().original_context, 4096);
  phi["original_max_position_embeddings"] = 48;
  EXPECT_EQ(parse_hf_config(phi.dump(), "config.json").ropes.front().original_context, 48);
  Json olmo = Json::parse(hf_config_json(made_of("Olmo3ForCausalLM")));
  olmo.erase("rope_parameters");
  olmo["rope_local_base_freq"] = 77.0;
  EXPECT_EQ(parse_hf_config(olmo.dump(), "config.json").ropes.back().theta, 5e5);
  Json gemma = Json::parse(hf_config_json(made_of("Gemma3ForCausalLM")));
  gemma["attn_logit_softcapping"] = 50.0;
  EXPECT_EQ(parse_hf_config(gemma.dump(), "config.json").blocks.front().attention->kind.softcap, 0);
}

}  // namespace
}  // namespace retort::architecture
