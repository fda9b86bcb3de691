// Configurations that are damaged, hostile or of a model that Retort would compute wrongly.

#include "configs_for_tests.h"
#include "retort/architecture/families.h"
#include "retort/architecture/hf_config.h"
#include "retort/architecture/hf_keys.h"
#include "retort/base/error.h"
#include "retort/base/random.h"

namespace retort::architecture {
namespace {

using base::Json;
using test::message_of;

Json sound() {
  return Json::parse(hf_config_json(test::small_config()));
}

std::string refusal_of_text(const std::string& text) {
  return message_of<base::ModelError>([&] { parse_hf_config(text, "config.json"); });
}

std::string refusal(const std::string& key, const Json& value) {
  Json json = sound();
  json[key] = value;
  return refusal_of_text(json.dump());
}

std::string refusal_of_raw(const std::string& key, const std::string& value) {
  Json json = sound();
  json[key] = "@";
  std::string text = json.dump();
  text.replace(text.find("\"@\""), 3, value);
  return refusal_of_text(text);
}

TEST(HfConfigRefusals, NamesEveryKeyThatItDoesNotHonour) {
  const std::vector<std::pair<std::string, Json>> cases{
      {"hidden_act", "gelu"},
      {"hidden_activation", "gelu_pytorch_tanh"},
      {"rope_scaling", {{"type", "linear"}, {"factor", 2.0}}},
      {"rope_scaling", {{"rope_type", "llama3"}}},
      {"rope_parameters", {{"rope_type", "proportional"}, {"factor", 4.0}}},
      {"rope_parameters", {{"rope_type", "linear"}}},
      {"rope_parameters", {{"rope_type", "linear"}, {"factor", 0.0}}},
      {"rope_parameters", {{"rope_type", "default"}, {"llama_4_scaling_beta", 0.1}}},
      {"rope_parameters", {{"factor", 2.0}}},
      {"rope_parameters", {{"full_attention", {{"rope_theta", 1.0}}}}},
      {"partial_rotary_factor", 0.5},
      {"layer_types", {"full_attention", "sliding_attention"}},
      {"quantization_config", {{"bits", 4}}},
      {"attn_logit_softcapping", 50.0},
      {"final_logit_softcapping", 30.0},
      {"embedding_multiplier", 12.0},
      {"residual_multiplier", 0.2},
      {"attention_multiplier", 0.01},
      {"logits_scaling", 8.0},
      {"query_pre_attn_scalar", 256},
      {"use_qk_norm", true},
      {"no_rope_layers", {1, 1, 0}},
      {"num_local_experts", 8},
      {"attention_chunk_size", 128},
      {"kv_lora_rank", 512},
      {"per_layer_config", {{"0", {{"skip", true}}}}}};
  for (const auto& [key, value] : cases)
    EXPECT_SAYS(refusal(key, value), value.contains("factor") && value["factor"] == 0.0 ? "factor" : key);
}

TEST(HfConfigRefusals, EveryRefusedKeyIsRefusedWithAValueNobodyKnows) {
  for (const RefusedKey& key : refused_keys()) {
    const std::string message = refusal(key.name, "something else");
    EXPECT_SAYS(message, key.name);
    EXPECT_SAYS(message, "would change what the model computes");
  }
}

bool has_or_ignores(const Family& family, std::string_view name) {
  return test::has_key(family, name) ||
         std::find(family.ignored.begin(), family.ignored.end(), name) != family.ignored.end();
}

TEST(HfConfigRefusals, AKeyOfAnotherFamilyIsRefusedUnlessNeutral) {
  for (const Family* reader : families())
    for (const Family* owner : families())
      for (const Key& key : owner->keys) {
        if (key.neutral == nullptr || has_or_ignores(*reader, key.name)) continue;
        SCOPED_TRACE(base::join(key.name, " in a ", reader->architecture));
        const Json neutral = Json::parse(key.neutral);
        const bool is_list =
            key.name == std::string_view("layer_types") || key.name == std::string_view("no_rope_layers");
        EXPECT_EQ(why_refused(*reader, key.name, is_list ? Json::array({neutral, neutral}) : neutral), "");
        if (!is_list) {
          EXPECT_SAYS(why_refused(*reader, key.name, Json::array({neutral})), "a setting of ");
        }
        EXPECT_SAYS(why_refused(*reader, key.name, "something else"), reader->architecture);
        EXPECT_SAYS(why_refused(*reader, key.name, Json::array({neutral, 0.5})), "a setting of ");
      }
  EXPECT_SAYS(refusal("logits_scaling", 8.0),
              "logits_scaling is \"8.0\": a setting of GraniteForCausalLM beyond those of LlamaForCausalLM");
}

TEST(HfConfigRefusals, TablesAgreeOnTheNeutralValueOfAKey) {
  for (const Family* one : families())
    for (const Family* other : families())
      for (const Key& key : one->keys)
        for (const Key& same : other->keys)
          if (std::string_view(key.name) == same.name) {
            ASSERT_EQ(key.neutral == nullptr, same.neutral == nullptr) << key.name;
            if (key.neutral != nullptr) {
              EXPECT_STREQ(key.neutral, same.neutral) << key.name;
            }
          }
}

TEST(HfConfigRefusals, AcceptsTheSameKeysWhereTheyChangeNothing) {
  Json json = sound();
  json["sliding_window"] = 64;
  json["layer_types"] = {"full_attention", "full_attention", "full_attention"};
  json["partial_rotary_factor"] = 1.0;
  json["embedding_multiplier"] = 1;
  json["quantization_config"] = nullptr;
  json["num_local_experts"] = nullptr;
  json["rope_parameters"]["partial_rotary_factor"] = 1.0;
  EXPECT_NO_THROW(parse_hf_config(json.dump(), "config.json"));
}

TEST(HfConfigRefusals, RefusesUnknownArchitecturesAndNamesTheSupportedOnes) {
  Json json = sound();
  json["architectures"] = {"GemmaForCausalLM"};
  json["model_type"] = "gemma";
  const std::string message = refusal_of_text(json.dump());
  EXPECT_SAYS(message, "GemmaForCausalLM");
  EXPECT_SAYS(message, "LlamaForCausalLM, MistralForCausalLM");
  EXPECT_SAYS(refusal("architectures", Json::array({"LlamaModel"})), "LlamaModel");
  EXPECT_SAYS(refusal("architectures", Json::array({"LlamaForCausalLM", "MistralForCausalLM"})),
              "architectures");
  EXPECT_SAYS(refusal("model_type", "mistral"), "of model type");
  json.erase("architectures");
  json.erase("model_type");
  EXPECT_SAYS(refusal_of_text(json.dump()), "names neither");
}

TEST(HfConfigRefusals, RefusesShapesThatCannotBe) {
  EXPECT_SAYS(refusal_of_raw("num_hidden_layers", "9223372036854775808"), "num_hidden_layers");
  EXPECT_SAYS(refusal_of_raw("num_hidden_layers", "9223372036854775807"), "num_hidden_layers");
  EXPECT_SAYS(refusal_of_raw("num_hidden_layers", "99999999999999999999999"), "num_hidden_layers");
  EXPECT_SAYS(refusal("num_hidden_layers", 0), "num_hidden_layers");
  EXPECT_SAYS(refusal("num_hidden_layers", -5), "num_hidden_layers");
  EXPECT_SAYS(refusal("num_attention_heads", 0), "num_attention_heads");
  EXPECT_SAYS(refusal("num_attention_heads", -4), "num_attention_heads");
  EXPECT_SAYS(refusal("num_key_value_heads", 3), "divisor");
  EXPECT_SAYS(refusal("num_key_value_heads", 0), "num_key_value_heads");
  EXPECT_SAYS(refusal("hidden_size", 4611686018427387904), "hidden_size");
  EXPECT_SAYS(refusal("hidden_size", 32.0), "whole number");
  EXPECT_SAYS(refusal("vocab_size", "96"), "whole number");
  EXPECT_SAYS(refusal("vocab_size", 1), "token_id");
  EXPECT_SAYS(refusal("intermediate_size", 1LL << 40), "intermediate_size");
  EXPECT_SAYS(refusal("eos_token_id", {1, -1}), "eos_token_id");
  EXPECT_SAYS(refusal("eos_token_id", "2"), "eos_token_id");
  EXPECT_SAYS(refusal("tie_word_embeddings", 1), "true or false");
}

TEST(HfConfigRefusals, RefusesAHiddenSizeThatHeadsDoNotDivideUnlessHeadDimIsGiven) {
  Json json = sound();
  json["hidden_size"] = 33;
  EXPECT_NO_THROW(parse_hf_config(json.dump(), "config.json"));
  json.erase("head_dim");
  EXPECT_SAYS(refusal_of_text(json.dump()), "not a multiple");
}

TEST(HfConfigRefusals, RefusesNumbersThatAreNone) {
  EXPECT_SAYS(refusal_of_raw("rms_norm_eps", "NaN"), "not sound JSON");
  EXPECT_SAYS(refusal_of_raw("rms_norm_eps", "1e999"), "not sound JSON");
  EXPECT_SAYS(refusal("rms_norm_eps", "1e-5"), "expected a number");
}

TEST(HfConfigRefusals, RefusesTwoDifferentThetas) {
  Json json = sound();
  json["rope_theta"] = 500000.0;
  EXPECT_SAYS(refusal_of_text(json.dump()), "rope_parameters: rope_theta is 10000, but 500000 at the top");
}

// A configuration of another family as it is written, with one key changed.
std::string refusal_of(const char* architecture, const char* key, const Json& value) {
  Config config = test::small_config();
  config.architecture = architecture;
  const Family& family = family_of(architecture);
  for (Block& block : config.blocks) {
    block.norms = family.norms;
    block.attention->kind.norm = family.norm;
    block.attention->kind.query_key_value_bias = family.query_key_value_bias;
  }
  Json json = Json::parse(hf_config_json(config));
  json[key] = value;
  return refusal_of_text(json.dump());
}

TEST(HfConfigRefusals, NamesListsThatContradictTheNumberOfLayersOrEachOther) {
  EXPECT_SAYS(refusal_of("Qwen3ForCausalLM", "layer_types", {"full_attention"}),
              "layer_types names 1 layers");
  EXPECT_SAYS(
      refusal_of("Qwen3ForCausalLM", "layer_types", {"full_attention", "linear_attention", "full_attention"}),
      "linear_attention");
  EXPECT_SAYS(refusal_of("Qwen3ForCausalLM", "layer_types",
                         {"full_attention", "sliding_attention", "full_attention"}),
              "sliding_window says no width");
  EXPECT_SAYS(refusal_of("SmolLM3ForCausalLM", "no_rope_layers", {1, 0}), "no_rope_layers names 2 layers");
  EXPECT_SAYS(refusal_of("SmolLM3ForCausalLM", "no_rope_layer_interval", -4), "expected at least 1");
  EXPECT_SAYS(refusal_of("Qwen3ForCausalLM", "is_causal", false), "attention that looks ahead");
  EXPECT_SAYS(refusal_of("Phi3ForCausalLM", "rope_parameters",
                         {{"rope_type", "longrope"},
                          {"rope_theta", 10000.0},
                          {"original_max_position_embeddings", 32},
                          {"short_factor", {1.0, 1.0}},
                          {"long_factor", {1.0, 1.0, 1.0, 1.0}}}),
              "have 2 and 4 numbers, expected 4");
}

TEST(HfConfigRefusals, KnowsTheWindowThatMistralHasWithoutTheKey) {
  Config config = test::small_config();
  config.architecture = "MistralForCausalLM";
  config.max_position_embeddings = 8192;
  Json json = Json::parse(hf_config_json(config));
  EXPECT_NO_THROW(parse_hf_config(json.dump(), "config.json"));
  json.erase("sliding_window");
  for (const Block& block : parse_hf_config(json.dump(), "config.json").blocks)
    EXPECT_EQ(block.attention->kind.window, 4096);
}

TEST(HfConfigRefusals, RefusesWhatIsNoConfiguration) {
  EXPECT_SAYS(refusal_of_text(""), "not sound JSON");
  EXPECT_SAYS(refusal_of_text("[]"), "expected a JSON object");
  EXPECT_SAYS(refusal_of_text("{}"), "names neither");
  EXPECT_SAYS(refusal_of_text(R"({"model_type":"llama"})"), "lacks");
  EXPECT_SAYS(refusal_of_text(R"({"model_type":"llama","model_type":"llama"})"), "twice");
  EXPECT_SAYS(refusal_of_text(std::string((1 << 20) + 1, ' ')), "more than");
  EXPECT_SAYS(refusal_of_text(std::string(1000, '[')), "nested");
}

TEST(HfConfigRefusals, MutatedTextIsRefusedOrValid) {
  const std::string text = hf_config_json(test::small_config());
  base::Random random(2, base::stream_of("mutations"));
  int accepted = 0;
  for (int i = 0; i < 5000; ++i) {
    std::string mutant = text;
    for (std::uint64_t k = random.next_below(3) + 1; k > 0; --k) {
      const std::size_t at = random.next_below(mutant.size() - 1);
      if (random.next_below(3) == 0)
        mutant.erase(at, random.next_below(4));
      else
        mutant[at] = random.next_below(2) == 0 ? static_cast<char>(random.next_below(256))
                                               : "0123456789-.eE\"{}[],:ntf"[random.next_below(24)];
    }
    try {
      validate(parse_hf_config(mutant, "mutant"), "mutant");
      ++accepted;
    } catch (const base::ModelError&) {
    }
  }
  EXPECT_GT(accepted, 50);
}

// As their config.json says it: architecture, model type, and the key that tells them apart.
TEST(HfConfigRefusals, ForeignModelsAreToldByFamilyKeyAndValue) {
  const struct {
    const char *json, *says;
  } kModels[] = {
      {R"({"architectures": ["MixtralForCausalLM"], "model_type": "mixtral", "num_local_experts": 8})",
       R"(architecture "MixtralForCausalLM" of model type "mixtral" is not supported: num_local_experts is "8": a mixture of experts)"},
      {R"({"architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe", "num_experts": 128})",
       "num_experts is \"128\": a mixture of experts"},
      {R"({"architectures": ["DeepseekV3ForCausalLM"], "model_type": "deepseek_v3", "n_routed_experts": 256,
           "kv_lora_rank": 512})",
       "n_routed_experts is \"256\": a mixture of experts"},
      {R"({"architectures": ["MiniCPM3ForCausalLM"], "model_type": "minicpm3", "kv_lora_rank": 256})",
       "kv_lora_rank is \"256\": latent attention (MLA)"},
      {R"({"architectures": ["MambaForCausalLM"], "model_type": "mamba", "state_size": 16})",
       "state_size is \"16\": state-space layers"},
      {R"({"architectures": ["Qwen3NextForCausalLM"], "model_type": "qwen3_next", "linear_num_key_heads": 16,
           "num_experts": 0})",
       "linear_num_key_heads is \"16\": linear attention"},
      {R"({"architectures": ["T5ForConditionalGeneration"], "model_type": "t5", "is_encoder_decoder": true})",
       "is_encoder_decoder is \"true\": an encoder"},
      {R"({"architectures": ["BertForMaskedLM"], "model_type": "bert", "type_vocab_size": 2})",
       "type_vocab_size is \"2\": an encoder"},
      {R"({"architectures": ["NewForCausalLM"], "model_type": "new"})", "is not supported; supported are "}};
  for (const auto& model : kModels)
    EXPECT_SAYS(test::message_of<base::ModelError>([&] { parse_hf_config(model.json, "config.json"); }),
                model.says);
}

}  // namespace
}  // namespace retort::architecture
