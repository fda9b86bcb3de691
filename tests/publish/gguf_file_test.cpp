// Models of every architecture that GGUF has, written and read again, and what would be silently another
// model.
#include "retort/publish/gguf_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "publish/configs_for_tests.h"
#include "publish/counted_model.h"
#include "retort/base/error.h"
#include "retort/io/gguf.h"
#include "retort/io/model_directory.h"
#include "retort/publish/form.h"
#include "retort/publish/gguf_keys.h"
#include "retort/publish/padded.h"
#include "support/message_of.h"
#include "support/outside_data.h"
#include "support/temporary_directory.h"

namespace retort {
namespace {

namespace fs = std::filesystem;
using architecture::Config;
using base::Json;
using test::config_of;

// A model directory with the tokenizer of the small model that comes along, written as GGUF.
class Written {
 public:
  explicit Written(const Config& config, const std::string& type = "f32")
      : config_(config), model_(directory_.path() / "model") {
    fs::create_directory(model_);
    test::write_counted(config, model_);
    fs::copy_file(test::source() / "models/europa-5m/tokenizer.json", model_ / "tokenizer.json");
    const auto files = io::ModelDirectory::open(model_);
    const publish::PaddedWeights weights(config, publish::padded(config), files);
    const auto types = publish::gguf_types(type, io::Dtype::f32, weights.config(), "model");
    publish::write_gguf_model({.config = weights.config(),
                               .weights = weights,
                               .directory = model_,
                               .name = "counted",
                               .types = types},
                              path(), std::numeric_limits<std::size_t>::max());
  }
  base::Path path() const { return directory_.path() / "a.gguf"; }
  const base::Path& model() const { return model_; }

 private:
  test::TemporaryDirectory directory_;
  Config config_;
  base::Path model_;
};

std::vector<std::byte> bytes_of(const io::ModelDirectory& files, const std::string& name) {
  const auto view = files.find(name);
  return {view.bytes.begin(), view.bytes.end()};
}

Config of_family(const char* architecture, Json more = Json::object()) {
  Json keys = {{"vocab_size", 4096}, {"bos_token_id", 0}, {"eos_token_id", 0}, {"pad_token_id", nullptr}};
  for (const auto& [key, value] : more.items()) keys[key] = value;
  return config_of(architecture, keys);
}

Json yarn(const Json& more) {
  Json scaling = {{"rope_type", "yarn"}, {"factor", 4.0}, {"original_max_position_embeddings", 16}};
  for (const auto& [key, value] : more.items()) scaling[key] = value;
  return {{"rope_scaling", scaling}};
}

const std::vector<std::pair<const char*, Json>>& models() {
  static const std::vector<std::pair<const char*, Json>> all = {
      {"LlamaForCausalLM", Json::object()},
      {"LlamaForCausalLM",
       {{"rope_scaling",
         {{"rope_type", "llama3"},
          {"factor", 32.0},
          {"low_freq_factor", 1.0},
          {"high_freq_factor", 4.0},
          {"original_max_position_embeddings", 8192}}}}},
      {"LlamaForCausalLM", {{"rope_scaling", {{"rope_type", "linear"}, {"factor", 2.0}}}}},
      {"LlamaForCausalLM", yarn({{"attention_factor", 1.25}})},
      {"LlamaForCausalLM", yarn({{"mscale", 0.7}, {"mscale_all_dim", 1.3}})},
      {"MistralForCausalLM", {{"sliding_window", nullptr}}},
      {"MistralForCausalLM", {{"sliding_window", 4096}}},
      {"Qwen2ForCausalLM", Json::object()},
      {"Qwen3ForCausalLM", Json::object()},
      {"Phi3ForCausalLM", {{"sliding_window", nullptr}}},
      {"Gemma2ForCausalLM", {{"query_pre_attn_scalar", 4}, {"sliding_window", 16}}},
      {"Gemma3ForCausalLM",
       {{"query_pre_attn_scalar", 4}, {"sliding_window", 16}, {"final_logit_softcapping", 5.0}}},
      {"Gemma3ForCausalLM", {{"query_pre_attn_scalar", 4}, {"sliding_window", 16}}}};
  return all;
}

TEST(WriteGgufModel, OfEveryArchitectureReadsBackBitForBit) {
  for (const auto& [architecture, keys] : models()) {
    const Written written(of_family(architecture, keys));
    const auto before = io::ModelDirectory::open(written.model()),
               after = io::ModelDirectory::open(written.path());
    EXPECT_EQ(after.names(), before.names()) << architecture;
    for (const auto& name : before.names())
      EXPECT_EQ(bytes_of(after, name), bytes_of(before, name)) << architecture << " " << name;
  }
}

io::GgufMetadata metadata_of(const Config& config) {
  const Written written(config);
  return io::GgufFile::open(written.path()).metadata();
}

// llama.cpp multiplies cos and sin by 1 + 0.1 log(factor), and by this.
TEST(WriteGgufModel, SaysWhatAYarnMultipliesBesideWhatItsFactorSays) {
  const auto times = [](const Json& more) {
    const auto metadata = metadata_of(of_family("LlamaForCausalLM", yarn(more)));
    const auto found = metadata.find("llama.rope.scaling.attn_factor");
    return found == metadata.end() ? 1.0 : found->second.get<double>();
  };
  const double usual = 1 + 0.1 * std::log(4.0);
  EXPECT_EQ(times(Json::object()), 1);
  EXPECT_NEAR(times({{"attention_factor", 1.25}}), 1.25 / usual, 1e-6);
  EXPECT_NEAR(times({{"mscale", 0.7}, {"mscale_all_dim", 1.3}}),
              (1 + 0.07 * std::log(4.0)) / (1 + 0.13 * std::log(4.0)) / usual, 1e-6);
}

TEST(WriteGgufModel, SaysTheCapOfLogitsAndThatThereIsNoWindow) {
  const auto gemma = metadata_of(
      of_family("Gemma3ForCausalLM",
                {{"query_pre_attn_scalar", 4}, {"sliding_window", 16}, {"final_logit_softcapping", 5.0}}));
  EXPECT_EQ(gemma.at("gemma3.final_logit_softcapping"), 5.0);
  const auto phi = metadata_of(of_family("Phi3ForCausalLM", {{"sliding_window", nullptr}}));
  EXPECT_EQ(phi.at("phi3.attention.sliding_window"), 0);
}

TEST(WriteGgufModel, OrdersTheRowsOfQueriesAsLlamaCpp) {
  const Written written(of_family("LlamaForCausalLM"));
  const auto file = io::GgufFile::open(written.path());
  const auto model = io::ModelDirectory::open(written.model());
  const auto before = model.find("model.layers.0.self_attn.q_proj.weight");
  const auto bytes = file.bytes(file.tensors().at("blk.0.attn_q.weight"));
  const std::size_t row = 32 * sizeof(float);
  // Heads of four rows: 0, 2, 1, 3.
  EXPECT_EQ(std::memcmp(bytes.data() + row, before.bytes.data() + 2 * row, row), 0);
  EXPECT_EQ(std::memcmp(bytes.data() + 6 * row, before.bytes.data() + 5 * row, row), 0);
}

TEST(WriteGgufModel, OfBlocksThatDifferIsPadded) {
  const auto config = test::pruned(of_family("LlamaForCausalLM"));
  const Written written(config);
  const auto read = architecture::read_config(written.path());
  EXPECT_TRUE(read.uniform());
  EXPECT_EQ(read.blocks.size(), config.blocks.size());
}

TEST(WriteGgufModel, OfBlocksThatDifferKeepsTheirSizesWhereLlamaCppTakesThem) {
  const auto config = test::pruned(of_family("LlamaForCausalLM"));
  const test::TemporaryDirectory directory;
  test::write_counted(config, directory.path());
  fs::copy_file(test::source() / "models/europa-5m/tokenizer.json", directory.path() / "tokenizer.json");
  const publish::Form form({.type = "f32"}, directory.path(), {});
  const test::TemporaryDirectory out;
  const auto file = form.write(out.path()).model;
  const auto metadata = io::GgufFile::open(file).metadata();
  EXPECT_EQ(metadata.at("general.architecture"), "deci");
  EXPECT_EQ(metadata.at("deci.attention.head_count"), (Json{8, 0, 6, 2}));
  EXPECT_EQ(metadata.at("deci.attention.head_count_kv"), (Json{4, 0, 3, 1}));
  EXPECT_EQ(metadata.at("deci.feed_forward_length"), (Json{8, 24, 32, 24})) << "zeros in place of no MLP";
  const auto before = io::ModelDirectory::open(directory.path()), after = io::ModelDirectory::open(file);
  for (const auto& name : before.names()) EXPECT_EQ(bytes_of(after, name), bytes_of(before, name)) << name;
  const auto zeros = bytes_of(after, "model.layers.2.mlp.down_proj.weight");
  EXPECT_TRUE(std::ranges::all_of(zeros, [](std::byte byte) { return byte == std::byte{0}; }));
}

TEST(WriteGgufModel, SaysWhichBlocksHaveAWindowWhereThePatternIsBroken) {
  auto config = of_family("Gemma3ForCausalLM", {{"query_pre_attn_scalar", 4}, {"sliding_window", 16}});
  const auto pattern_in = [](const Config& of) {
    const Written written(of);
    const auto metadata = io::GgufFile::open(written.path()).metadata();
    const auto found = metadata.find("gemma3.attention.sliding_window_pattern");
    return found == metadata.end() ? Json() : found->second;
  };
  EXPECT_EQ(pattern_in(config), Json()) << "four blocks with windows are what llama.cpp expects";
  config.blocks.front().attention->kind.window.reset();
  config.blocks.front().attention->kind.rope = 0;
  EXPECT_EQ(pattern_in(config), (Json{0, 1, 1, 1}));
}

TEST(WriteGgufModel, RefusesWhatWouldBeAnotherModel) {
  const auto refusal = [](const Config& config) {
    return test::message_of<base::ModelError>([&] { const Written written(config); });
  };
  EXPECT_SAYS(refusal(of_family("MistralForCausalLM", {{"sliding_window", 16}})),
              "its blocks see 16 tokens, and llama.cpp computes llama without a window; write the model for "
              "transformers.");
  EXPECT_SAYS(refusal(of_family("SmolLM3ForCausalLM")),
              "is a SmolLM3ForCausalLM, expected one of LlamaForCausalLM");
  EXPECT_SAYS(refusal(of_family("Gemma3ForCausalLM", {{"query_pre_attn_scalar", 7}, {"sliding_window", 16}})),
              "the scale of scores");
  EXPECT_SAYS(refusal(of_family("LlamaForCausalLM", {{"attention_bias", true}})), "bias");
  EXPECT_SAYS(refusal(of_family("LlamaForCausalLM", {{"rope_scaling",
                                                      {{"rope_type", "yarn"},
                                                       {"factor", 2.0},
                                                       {"beta_fast", 16.0},
                                                       {"original_max_position_embeddings", 32}}}})),
              "its yarn has other bounds (beta_fast, beta_slow) than 32 and 1");
  EXPECT_SAYS(refusal(of_family("LlamaForCausalLM", yarn({{"truncate", false}}))), "the positions");
  EXPECT_SAYS(
      refusal(of_family("Gemma3ForCausalLM", {{"query_pre_attn_scalar", 4},
                                              {"sliding_window", 16},
                                              {"num_hidden_layers", 6},
                                              {"rope_scaling", yarn(Json::object())["rope_scaling"]}})),
      "has a yarn beside blocks with windows and positions of their own");
  const Json gemma{{"query_pre_attn_scalar", 4}, {"sliding_window", 16}};
  Json changed = gemma;
  changed["attn_logit_softcapping"] = nullptr;
  EXPECT_SAYS(refusal(of_family("Gemma2ForCausalLM", changed)), "has no soft caps");
  changed = gemma;
  changed["tie_word_embeddings"] = false;
  EXPECT_SAYS(refusal(of_family("Gemma2ForCausalLM", changed)), "has a head of its own");
}

// What `retort verify RECIPE` asks, before there are weights.
std::string foreseen_refusal(publish::Program program, const Config& config) try {
  (void)publish::foreseen_form({.program = program}, config, false, test::source() / "models/europa-5m");
  return "";
} catch (const base::ModelError& error) {
  return error.what();
}

TEST(ForeseenForm, RefusesWhatAFileHasNoWordsForBeforeThereAreWeights) {
  const auto refusal = [](const Config& config) {
    return foreseen_refusal(publish::Program::llama_cpp, config);
  };
  EXPECT_SAYS(refusal(of_family("LlamaForCausalLM", {{"attention_bias", true}})), "has no tensor for");
  EXPECT_SAYS(refusal(of_family("LlamaForCausalLM", yarn({{"truncate", false}}))), "the positions");
  EXPECT_SAYS(refusal(of_family("Gemma3ForCausalLM", {{"query_pre_attn_scalar", 7}, {"sliding_window", 16}})),
              "the scale of scores");
  EXPECT_EQ(refusal(of_family("LlamaForCausalLM")), "");
}

TEST(ForeseenForm, RefusesWhatVllmWasSeenToComputeOtherwise) {
  const auto refusal = [](const Config& config) { return foreseen_refusal(publish::Program::vllm, config); };
  const Json windows{{"use_sliding_window", true}, {"sliding_window", 16}, {"max_window_layers", 2}};
  for (const char* qwen : {"Qwen2ForCausalLM", "Qwen3ForCausalLM"}) {
    EXPECT_SAYS(refusal(of_family(qwen, windows)), "windows: other log-probabilities; write it for");
    EXPECT_EQ(refusal(of_family(qwen)), "");
  }
  EXPECT_SAYS(refusal(of_family("Qwen3ForCausalLM", {{"attention_bias", true}})), "attention_bias: other");
  EXPECT_SAYS(refusal(of_family("LlamaForCausalLM", {{"hidden_act", "gelu_pytorch_tanh"}})), "gelu: fails");
  EXPECT_EQ(refusal(of_family("LlamaForCausalLM", {{"attention_bias", true}})), "");
}

TEST(WriteGgufModel, AValueThatATypeCannotHoldIsNamed) {
  const auto message = test::message_of<base::ModelError>([&] {
    auto config = of_family("LlamaForCausalLM");
    const Written written(config, "f16");  // the embedding counts to 131072
  });
  EXPECT_SAYS(message, "tensor \"model.embed_tokens.weight\"");
}

}  // namespace
}  // namespace retort
