#include "retort/architecture/families.h"

#include <cmath>
#include <map>
#include <sstream>

#include "configs_for_tests.h"
#include "retort/architecture/description.h"
#include "retort/architecture/hf_config.h"
#include "retort/architecture/loading.h"
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
    EXPECT_EQ(&stock_family(config), &family);
    EXPECT_EQ(written_form(config).family, &family);
    EXPECT_FALSE(written_form(config).is_own);
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
    const Json written = Json::parse(text);
    for (const auto& [key, value] : written.items()) {
      const bool others = std::any_of(families().begin(), families().end(),
                                      [&](const Family* other) { return test::has_key(*other, key); });
      EXPECT_TRUE(!others || test::has_key(*family, key)) << key << " is of other families";
    }
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

// What `retort families` says of each: its line and those below it.
std::map<std::string, std::string> printed_families() {
  std::map<std::string, std::string> texts;
  std::istringstream lines(families_text());
  std::string name;
  for (std::string line; std::getline(lines, line);) {
    if (line.front() != ' ') name = line.substr(0, line.find(' '));
    texts[name] += line + "\n";
  }
  return texts;
}

TEST(Families, ArePrintedWithThePartsThatStay) {
  auto texts = printed_families();
  EXPECT_EQ(texts.size(), families().size() + wrappers().size());
  for (const Family* family : families()) {
    SCOPED_TRACE(family->architecture);
    const Config config = made_of(family->architecture);  // without longrope
    const std::string& text = texts[family->architecture];
    EXPECT_EQ(text.find("pruning leaves heads:") != std::string::npos, !why_heads_stay(config).empty());
    EXPECT_EQ(text.find("pruning leaves hidden features:") != std::string::npos,
              !why_hidden_stays(config).empty());
  }
  EXPECT_SAYS(texts["Phi3ForCausalLM"], "units: uniform leaves heads and hidden features with longrope");
  EXPECT_SAYS(texts["Gemma3ForCausalLM"], "units: uniform leaves heads where hidden_size is no multiple");
  EXPECT_EQ(texts["LlamaForCausalLM"].find("leaves heads"), std::string::npos) << "written as a Mistral";
}

TEST(Families, SayWhichPartsStayAndWhy) {
  EXPECT_EQ(why_heads_stay(made_of("Qwen3ForCausalLM")), "");
  EXPECT_EQ(why_hidden_stays(made_of("Qwen3ForCausalLM")), "");
  EXPECT_SAYS(why_heads_stay(made_of("Olmo2ForCausalLM")), "across heads");
  EXPECT_SAYS(why_hidden_stays(made_of("Gemma2ForCausalLM")), "the root of the hidden size");
}

// Heads of which one KV group less leaves a number that does not divide the hidden size.
Config with_heads(const char* architecture, std::int64_t hidden, std::int64_t heads, std::int64_t kv_heads) {
  Config config = made_of(architecture);
  config.hidden_size = hidden;
  if (config.embedding_factor != 1) config.embedding_factor = std::sqrt(static_cast<double>(hidden));
  for (Block& block : config.blocks) {
    block.attention->num_heads = heads;
    block.attention->num_kv_heads = kv_heads;
  }
  return config;
}

TEST(Families, LoseHeadsByLayerWhereAClassOfTransformersRefusesTheirNumber) {
  for (const char* architecture : {"Gemma2ForCausalLM", "Gemma3ForCausalLM"}) {
    SCOPED_TRACE(architecture);
    const Config whole = with_heads(architecture, 64, 8, 4);
    EXPECT_EQ(why_heads_stay(whole), "");
    EXPECT_SAYS(why_heads_stay_alike(whole), "fewer heads and the same hidden size");
    EXPECT_EQ(why_heads_stay_alike(with_heads(architecture, 72, 8, 4)), "");
    // Also where all blocks have lost as many.
    const Config pruned = with_heads(architecture, 64, 6, 3);
    EXPECT_TRUE(written_form(pruned).is_own);
    EXPECT_THROW(stock_family(pruned), base::ModelError);
    EXPECT_EQ(parse_hf_config(hf_config_json(pruned), "config.json"), pruned);
    EXPECT_SAYS(hf_config_json(pruned), "RetortForCausalLM");
  }
  EXPECT_EQ(why_heads_stay_alike(with_heads("LlamaForCausalLM", 64, 8, 4)), "") << "a Mistral says it";
}

TEST(Families, SayWhichProgramsLoadAModel) {
  Config config = made_of("LlamaForCausalLM");
  EXPECT_SAYS(where_it_loads(config), "in transformers, as LlamaForCausalLM; elsewhere as retort export");
  EXPECT_EQ(where_it_will_load(config, true), where_it_loads(config));
  EXPECT_SAYS(where_it_will_load(config, false), "trust_remote_code=True");
  config.hidden_size = 33;
  EXPECT_SAYS(where_it_loads(config), "as MistralForCausalLM");
  config.blocks[1].mlp = DenseMlp{8};
  EXPECT_SAYS(where_it_loads(config), "without that code, as retort export writes it");
  EXPECT_EQ(where_it_will_load(config, true), where_it_loads(config)) << "blocks that differ stay so";
  EXPECT_SAYS(where_it_loads(with_heads("Gemma3ForCausalLM", 64, 6, 3)), "trust_remote_code=True");
  Config unsayable = made_of("Gemma2ForCausalLM");
  unsayable.embedding_factor = 3;
  EXPECT_SAYS(where_it_loads(unsayable), "nowhere once it is written again");
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

// The keys that files of well-known models have, with small sizes.
TEST(Families, KnowTheKeysOfTheFilesThatPeopleHave) {
  const Json sizes = {{"vocab_size", 262144},
                      {"hidden_size", 64},
                      {"intermediate_size", 48},
                      {"num_hidden_layers", 4},
                      {"num_attention_heads", 4},
                      {"num_key_value_heads", 2},
                      {"max_position_embeddings", 131072},
                      {"bos_token_id", 1},
                      {"eos_token_id", 2},
                      {"initializer_range", 0.02},
                      {"use_cache", true},
                      {"torch_dtype", "bfloat16"},
                      {"attention_dropout", 0.0},
                      {"transformers_version", "4.51.0"}};
  const std::vector<Json> files = {
      Json::parse(R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "attention_bias": false,
        "mlp_bias": false, "pretraining_tp": 1, "head_dim": 16, "hidden_act": "silu", "rms_norm_eps": 1e-05,
        "rope_scaling": {"factor": 32.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0,
          "original_max_position_embeddings": 8192, "rope_type": "llama3"}, "rope_theta": 500000.0,
        "tie_word_embeddings": true})"),
      Json::parse(R"({"architectures": ["MistralForCausalLM"], "model_type": "mistral", "hidden_act": "silu",
        "rms_norm_eps": 1e-05, "rope_theta": 10000.0, "sliding_window": 4096, "tie_word_embeddings": false})"),
      Json::parse(R"({"architectures": ["MistralForCausalLM"], "model_type": "mistral", "head_dim": 128,
        "hidden_act": "silu", "rms_norm_eps": 1e-05, "rope_theta": 1000000.0, "sliding_window": null,
        "tie_word_embeddings": false})"),
      Json::parse(R"({"architectures": ["Mistral3ForConditionalGeneration"], "model_type": "mistral3",
        "image_token_index": 10, "multimodal_projector_bias": false, "projector_hidden_act": "gelu",
        "spatial_merge_size": 2, "vision_feature_layer": -1, "vision_config": {"model_type": "pixtral"},
        "text_config": {"model_type": "ministral3", "head_dim": 128, "hidden_act": "silu", "rms_norm_eps": 1e-05,
          "rope_parameters": {"beta_fast": 32.0, "beta_slow": 1.0, "factor": 16.0, "llama_4_scaling_beta": 0.1,
            "mscale": 1.0, "mscale_all_dim": 1.0, "original_max_position_embeddings": 16384, "rope_theta": 1000000.0,
            "rope_type": "yarn", "type": "yarn"}, "sliding_window": null}})"),
      Json::parse(R"({"architectures": ["Olmo3ForCausalLM"], "model_type": "olmo3", "attention_bias": false,
        "hidden_act": "silu", "layer_types": ["sliding_attention", "sliding_attention", "sliding_attention",
          "full_attention"], "rms_norm_eps": 1e-06, "rope_scaling": {"attention_factor": 1.2079441541679836,
          "beta_fast": 32.0, "beta_slow": 1.0, "factor": 8.0, "original_max_position_embeddings": 8192,
          "rope_type": "yarn"}, "rope_theta": 500000, "sliding_window": 4096, "tie_word_embeddings": false})"),
      Json::parse(R"({"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "hidden_act": "silu",
        "max_window_layers": 21, "rms_norm_eps": 1e-06, "rope_theta": 1000000.0, "sliding_window": 32768,
        "tie_word_embeddings": true, "use_mrope": false, "use_sliding_window": false})"),
      Json::parse(R"({"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "attention_bias": false,
        "head_dim": 128, "hidden_act": "silu", "max_window_layers": 36, "rms_norm_eps": 1e-06, "rope_scaling": null,
        "rope_theta": 1000000, "sliding_window": null, "tie_word_embeddings": true, "use_sliding_window": false})"),
      Json::parse(
          R"({"architectures": ["SmolLM3ForCausalLM"], "model_type": "smollm3", "attention_bias": false,
        "hidden_act": "silu", "layer_types": ["full_attention", "full_attention", "full_attention", "full_attention"],
        "max_window_layers": 28, "mlp_bias": false, "no_rope_layer_interval": 4, "no_rope_layers": [1, 1, 1, 0],
        "pretraining_tp": 2, "rms_norm_eps": 1e-06, "rope_scaling": null, "rope_theta": 5000000.0,
        "sliding_window": null, "use_sliding_window": false})"),
      Json::parse(R"({"architectures": ["Phi3ForCausalLM"], "model_type": "phi3", "attention_bias": false,
        "auto_map": {"AutoConfig": "configuration_phi3.Phi3Config"}, "embd_pdrop": 0.0, "full_attn_mod": 1,
        "hidden_act": "silu", "interpolate_factor": 1, "lm_head_bias": false, "mlp_bias": false,
        "original_max_position_embeddings": 4096, "partial_rotary_factor": 0.75, "resid_pdrop": 0.0,
        "rms_norm_eps": 1e-05, "rope_scaling": {"long_factor": [1, 1.1, 1.2, 1.3, 1.4, 1.5],
          "short_factor": [1, 1, 1, 1, 1, 1], "type": "longrope"}, "rope_theta": 10000.0, "sliding_window": 262144,
        "tie_word_embeddings": true})"),
      Json::parse(R"({"architectures": ["Gemma2ForCausalLM"], "model_type": "gemma2", "attention_bias": false,
        "attn_logit_softcapping": 50.0, "cache_implementation": "hybrid", "final_logit_softcapping": 30.0,
        "head_dim": 32, "hidden_act": "gelu_pytorch_tanh", "hidden_activation": "gelu_pytorch_tanh",
        "query_pre_attn_scalar": 32, "rms_norm_eps": 1e-06, "rope_theta": 10000.0, "sliding_window": 4096})"),
      Json::parse(
          R"({"architectures": ["Gemma3ForCausalLM"], "model_type": "gemma3_text", "attention_bias": false,
        "attn_logit_softcapping": null, "cache_implementation": "hybrid", "final_logit_softcapping": null,
        "head_dim": 32, "hidden_activation": "gelu_pytorch_tanh", "query_pre_attn_scalar": 32, "rms_norm_eps": 1e-06,
        "rope_local_base_freq": 10000, "rope_scaling": null, "rope_theta": 1000000, "sliding_window": 512,
        "sliding_window_pattern": 6})"),
      Json::parse(R"({"architectures": ["Olmo2ForCausalLM"], "model_type": "olmo2", "attention_bias": false,
        "hidden_act": "silu", "rms_norm_eps": 1e-06, "rope_scaling": null, "rope_theta": 500000,
        "tie_word_embeddings": false})"),
      Json::parse(
          R"({"architectures": ["GraniteForCausalLM"], "model_type": "granite", "attention_bias": false,
        "attention_multiplier": 0.015625, "embedding_multiplier": 12.0, "hidden_act": "silu", "logits_scaling": 8.0,
        "mlp_bias": false, "residual_multiplier": 0.22, "rms_norm_eps": 1e-05, "rope_scaling": null,
        "rope_theta": 5000000.0, "tie_word_embeddings": true})")};
  for (const Json& file : files) {
    SCOPED_TRACE(file.at("model_type").get<std::string>());
    const bool is_wrapped = file.contains("text_config");
    Json whole = file, part = sizes;
    part.update(is_wrapped ? file.at("text_config") : file);
    (is_wrapped ? whole["text_config"] : whole) = part;
    std::vector<std::string> notes;
    const Config config = parse_hf_config(whole.dump(), "config.json", &notes);
    EXPECT_EQ(notes.size(), is_wrapped ? 1U : 0U) << "the language part is read: " << Json(notes).dump();
    EXPECT_EQ(parse_hf_config(hf_config_json(config), "config.json"), config);
  }
}

}  // namespace
}  // namespace retort::architecture
