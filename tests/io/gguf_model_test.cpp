#include <gtest/gtest.h>

#include <cstring>

#include "files_for_tests.h"
#include "retort/base/error.h"
#include "retort/base/json.h"
#include "retort/io/model_directory.h"
#include "retort/io/tokenizer_file.h"
#include "support/gguf_writer.h"
#include "support/temporary_directory.h"

namespace retort::io {
namespace {

using base::Json;
using base::ModelError;
using test::GgufWriter;
using test::message_of;

GgufWriter tiny_model() {
  auto file = test::tiny_gguf_metadata();
  test::add_tiny_tensors(file);
  return file;
}

class GgufModel : public ::testing::Test {
 protected:
  base::Path write(const GgufWriter& file, const std::string& name = "model.gguf") const {
    test::write_file(directory_ / name, file.bytes());
    return directory_ / name;
  }
  std::string refusal(const GgufWriter& file) const {
    const auto path = write(file);
    return message_of<ModelError>([&] { ModelDirectory::open(path); });
  }
  std::string tokenizer_refusal(const GgufWriter& file) const {
    const auto path = write(file);
    return message_of<ModelError>([&] { read_tokenizer_text(path, 1 << 20); });
  }
  // With one more key, or the tensor `name` changed by `change`.
  template <typename Change>
  std::string refusal_with(Change&& change) const {
    auto file = tiny_model();
    change(file);
    return refusal(file);
  }

  test::TemporaryDirectory directory_;
};

std::vector<float> floats(const TensorView& view) {
  std::vector<float> values(view.bytes.size() / sizeof(float));
  std::memcpy(values.data(), view.bytes.data(), view.bytes.size());
  return values;
}

TEST_F(GgufModel, OfPhi3HasTheFactorsOfItsPositions) {
  auto file = test::tiny_gguf_metadata("phi3");
  test::add_tiny_tensors(file);
  file.number("phi3.rope.dimension_count", 1);
  file.number("phi3.rope.scaling.original_context_length", 16);
  file.real("phi3.rope.scaling.attn_factor", 1.25F);
  file.tensor("rope_factors_short.weight", {1}, 0, test::bytes_of_values<float>({1.5F}));
  file.tensor("rope_factors_long.weight", {1}, 0, test::bytes_of_values<float>({8}));
  const auto model = ModelDirectory::open(write(file));
  const Json config = base::parse_json(model.config_text());
  EXPECT_EQ(config.at("rope_scaling"), Json({{"rope_type", "longrope"},
                                             {"short_factor", {1.5}},
                                             {"long_factor", {8.0}},
                                             {"attention_factor", 1.25}}));
  EXPECT_EQ(config.at("partial_rotary_factor"), 0.5);
  EXPECT_EQ(config.at("original_max_position_embeddings"), 16);
  EXPECT_TRUE(model.contains("model.layers.0.mlp.gate_up_proj.weight"));
  file.tensor("blk.0.ffn_norm.weight", {4}, 0, std::string(16, '\0'));
  EXPECT_SAYS(refusal(file), "blk.0.ffn_norm.weight");
}

TEST_F(GgufModel, OfGemmaHasItsWindowsAndScores) {
  auto file = test::tiny_gguf_metadata("gemma3");
  test::add_tiny_tensors(file);
  file.number("gemma3.attention.sliding_window", 8);
  file.integers("gemma3.attention.sliding_window_pattern", {1});
  file.real("gemma3.rope.freq_base_swa", 5000);
  const auto model = ModelDirectory::open(write(file));
  const Json config = base::parse_json(model.config_text());
  EXPECT_EQ(config.at("layer_types"), Json::array({"sliding_attention"}));
  EXPECT_EQ(config.at("rope_local_base_freq"), 5000);
  EXPECT_EQ(config.at("query_pre_attn_scalar"), 2);
  EXPECT_EQ(config.at("hidden_activation"), "gelu_pytorch_tanh");
  EXPECT_EQ(floats(model.find("model.norm.weight")), (std::vector<float>{-1, 0, 1, 2}));
  EXPECT_TRUE(model.contains("model.layers.0.pre_feedforward_layernorm.weight"));
}

TEST_F(GgufModel, LooksLikeADirectoryOfHuggingFace) {
  const auto model = ModelDirectory::open(write(tiny_model()));
  EXPECT_EQ(model.names().size(), 11U);
  for (const char* name :
       {"model.embed_tokens.weight", "model.norm.weight", "model.layers.0.input_layernorm.weight",
        "model.layers.0.post_attention_layernorm.weight", "model.layers.0.mlp.gate_proj.weight",
        "model.layers.0.mlp.up_proj.weight", "model.layers.0.self_attn.o_proj.weight"})
    EXPECT_TRUE(model.contains(name)) << name;
  const auto down = model.find("model.layers.0.mlp.down_proj.weight");
  EXPECT_EQ(std::vector(down.shape.begin(), down.shape.end()), (std::vector<std::int64_t>{4, 8}));
  EXPECT_EQ(model.metadata().at("general.architecture"), "llama");
  EXPECT_EQ(model.stored_types(), (StoredTypes{{"F32", 180}}));
  EXPECT_EQ(model.quantised_types(), "");
  EXPECT_EQ(model.total_bytes(), 720U);
}

TEST_F(GgufModel, UndoesTheOrderOfQueryAndKeyRows) {
  // Two heads of eight rows; llama.cpp has rows 0, 4, 1, 5, 2, 6, 3, 7 of each head.  That order is no
  // inverse of itself, as that of four rows would be.
  auto file = test::tiny_gguf_metadata();
  std::vector<float> values, in_order;
  for (int head = 0; head < 2; ++head)
    for (const int row : {0, 4, 1, 5, 2, 6, 3, 7}) values.insert(values.end(), 2, 8.F * head + row);
  for (int row = 0; row < 16; ++row) in_order.insert(in_order.end(), 2, row);
  file.tensor("token_embd.weight", {2, 6}, 0, std::string(48, '\0'));
  file.tensor("blk.0.attn_q.weight", {2, 16}, 0, test::bytes_of_values(values));
  file.tensor("blk.0.attn_k.weight", {2, 8}, 0,
              test::bytes_of_values(std::vector(values.begin(), values.begin() + 16)));
  const auto model = ModelDirectory::open(write(file));
  EXPECT_EQ(floats(model.find("model.layers.0.self_attn.q_proj.weight")), in_order);
  EXPECT_EQ(floats(model.find("model.layers.0.self_attn.k_proj.weight")),
            std::vector(in_order.begin(), in_order.begin() + 16));
}

TEST_F(GgufModel, MakesValuesOfBlocksThatOutliveTheModel) {
  auto file = test::tiny_gguf_metadata();
  std::string block = test::little_endian(std::uint16_t{0x3800});  // 0.5
  for (int i = 0; i < 32; ++i) block += static_cast<char>(i - 16);
  file.tensor("token_embd.weight", {32, 1}, 8, block);
  TensorView view;
  {
    const auto model = ModelDirectory::open(write(file));
    EXPECT_TRUE(model.header("model.embed_tokens.weight").dequantised);
    EXPECT_EQ(model.quantised_types(), "Q8_0");
    view = model.find("model.embed_tokens.weight");
  }
  std::vector<float> values(32);
  std::memcpy(values.data(), view.bytes.data(), view.bytes.size());
  EXPECT_EQ(values.front(), -8.0F);
  EXPECT_EQ(values.back(), 7.5F);
}

TEST_F(GgufModel, SaysItsConfiguration) {
  auto file = tiny_model();
  file.number("llama.rope.dimension_count", 2);
  file.real("llama.rope.freq_base", 500000.F);
  file.number("tokenizer.ggml.bos_token_id", 1);
  file.number("tokenizer.ggml.eos_token_id", 2);
  file.number("tokenizer.ggml.eot_token_id", 3);
  const Json config = base::parse_json(read_config_text(write(file)));
  EXPECT_EQ(config.at("architectures"), Json::array({"LlamaForCausalLM"}));
  EXPECT_EQ(config.at("hidden_size"), 4);
  EXPECT_EQ(config.at("head_dim"), 2);
  EXPECT_EQ(config.at("vocab_size"), 6);
  EXPECT_EQ(config.at("rms_norm_eps"), 1e-5);
  EXPECT_EQ(config.at("rope_theta"), 500000.0);
  EXPECT_EQ(config.at("tie_word_embeddings"), true);
  EXPECT_EQ(config.at("dtype"), "float32");
  EXPECT_EQ(config.at("bos_token_id"), 1);
  EXPECT_EQ(config.at("eos_token_id"), Json::array({2, 3}));
  EXPECT_TRUE(config.at("pad_token_id").is_null());
}

TEST_F(GgufModel, NamesListsThatNobodyKnowsAsItNamesOtherKeys) {
  auto file = tiny_model();
  file.integers("llama.rope.dimension_sections", {1, 2});
  file.number("llama.new_key", 1);
  file.integers("qwen2.of_another", {1});
  const Json config = base::parse_json(read_config_text(write(file)));
  EXPECT_TRUE(config.contains("llama.rope.dimension_sections"));
  EXPECT_TRUE(config.contains("llama.new_key"));
  EXPECT_FALSE(config.contains("qwen2.of_another"));
}

TEST_F(GgufModel, IsSavedInTheTypeOfItsMatrices) {
  const auto dtype = [&](std::uint32_t type, std::size_t bytes) {
    auto file = test::tiny_gguf_metadata();
    file.tensor("token_embd.weight", {256, 1}, type, std::string(bytes, '\0'));
    file.tensor("output_norm.weight", {4}, 0, std::string(16, '\0'));
    return base::parse_json(read_config_text(write(file))).at("dtype").get<std::string>();
  };
  EXPECT_EQ(dtype(0, 1024), "float32");
  EXPECT_EQ(dtype(1, 512), "float16");
  EXPECT_EQ(dtype(30, 512), "bfloat16");
  EXPECT_EQ(dtype(12, 144), "bfloat16");
}

TEST_F(GgufModel, RefusesAForeignArchitecture) {
  GgufWriter file;
  file.text("general.architecture", "mamba");
  EXPECT_SAYS(refusal(file),
              "general.architecture is \"mamba\", expected one of \"llama\", \"qwen2\", \"qwen3\"");
  EXPECT_SAYS(refusal(GgufWriter{}), "general.architecture is \"\"");
}

TEST_F(GgufModel, RefusesByNameWhatChangesTheMathematics) {
  EXPECT_SAYS(refusal_with([](auto& file) { file.number("llama.expert_count", 8); }), "a mixture of experts");
  EXPECT_SAYS(refusal_with([](auto& file) { file.text("llama.rope.scaling.type", "longrope"); }),
              "llama.rope.scaling.type is \"longrope\"");
  EXPECT_SAYS(refusal_with([](auto& file) { file.real("llama.rope.scale_linear", 2); }), "scaled rotary");
  EXPECT_SAYS(refusal_with([](auto& file) { file.number("llama.rope.dimension_count", 1); }),
              "a part of a head");
  EXPECT_SAYS(refusal_with([](auto& file) { file.number("llama.attention.value_length", 4); }),
              "value_length is 4");
  EXPECT_SAYS(refusal_with([](auto& file) { file.tensor("rope_freqs.weight", {1}, 0, std::string(4, 'x')); }),
              "rope_freqs.weight");
  EXPECT_SAYS(refusal_with([](auto& file) { file.text("general.type", "adapter"); }), "general.type");
}

TEST_F(GgufModel, RefusesMetadataOfAnotherKindOrNone) {
  EXPECT_SAYS(refusal_with([](auto& file) { file.text("llama.rope.freq_base", "many"); }),
              "\"llama.rope.freq_base\" is \"many\", expected a number");
  EXPECT_SAYS(refusal_with([](auto& file) { file.integers("tokenizer.ggml.eos_token_id", {1}); }),
              "expected a whole number");
  GgufWriter file;
  file.text("general.architecture", "llama");
  file.number("llama.attention.head_count", 2);
  EXPECT_SAYS(refusal(file), "has no metadata \"llama.block_count\"");
  file.number("llama.block_count", 1);
  EXPECT_SAYS(refusal(file), "has no tensor \"token_embd.weight\"");
  file.tensor("token_embd.weight", {4, 6}, 0, std::string(96, '\0'));
  EXPECT_SAYS(refusal(file), "has no metadata");
}

TEST_F(GgufModel, RefusesRowsThatDoNotDivideIntoHeads) {
  auto file = test::tiny_gguf_metadata();
  file.tensor("token_embd.weight", {4, 6}, 0, std::string(96, '\0'));
  file.tensor("blk.0.attn_q.weight", {4, 6}, 0, std::string(96, '\0'));
  EXPECT_SAYS(refusal(file), "has 6 rows, expected an even number of them for each of 2 heads");
}

TEST_F(GgufModel, KeepsTheNamesOfTensorsThatItDoesNotKnow) {
  auto file = tiny_model();
  file.tensor("blk.0.attn_sinks.weight", {4}, 0, std::string(16, '\0'));
  file.tensor("blk.00.ffn_up.weight", {4}, 0, std::string(16, '\0'));
  const auto model = ModelDirectory::open(write(file));
  EXPECT_TRUE(model.contains("blk.0.attn_sinks.weight"));
  EXPECT_TRUE(model.contains("blk.00.ffn_up.weight"));
}

TEST_F(GgufModel, IsKnownByItsEndingAndByItsFirstBytes) {
  const auto path = write(tiny_model(), "blob");
  EXPECT_TRUE(is_gguf(path));
  test::write_file(directory_ / "not.gguf", "a text that is long enough for a header");
  EXPECT_SAYS(message_of<ModelError>([&] { ModelDirectory::open(directory_ / "not.gguf"); }),
              "does not begin with \"GGUF\"");
  EXPECT_FALSE(is_gguf(directory_.path()));
  EXPECT_FALSE(is_gguf(directory_ / "none"));
}

TEST_F(GgufModel, GivesItsTokenizerAndTemplatesToModelsMadeFromIt) {
  auto file = tiny_model();
  test::add_tiny_tokenizer(file);
  file.text("tokenizer.chat_template", "{{ messages }}");
  file.text("tokenizer.chat_template.tool_use", "{{ tools }}");
  const auto path = write(file);
  const auto copy = directory_ / "copy";
  copy_files(accompanying_files(path), copy);
  EXPECT_EQ(base::read_file(copy / "chat_template.jinja"), "{{ messages }}");
  EXPECT_EQ(base::read_file(copy / "additional_chat_templates/tool_use.jinja"), "{{ tools }}");
  EXPECT_EQ(base::read_file(copy / "tokenizer.json"), read_tokenizer_text(path, 1 << 20).text);
  const Json config = base::parse_json(base::read_file(copy / "tokenizer_config.json"));
  EXPECT_EQ(config.at("bos_token"), "<s>");
  EXPECT_EQ(config.at("eos_token"), "</s>");
  EXPECT_EQ(config.at("model_max_length"), 64);
}

// What llama.cpp keeps to test tokenizers with: also of architectures that are no models here.
TEST_F(GgufModel, GivesATokenizerFromAFileWithoutWeights) {
  GgufWriter file;
  file.text("general.architecture", "no-model");
  test::add_tiny_tokenizer(file);
  const auto path = write(file);
  const auto files = accompanying_files(path);
  ASSERT_FALSE(files.empty());
  copy_files(files, directory_ / "copy");
  EXPECT_EQ(base::read_file(directory_ / "copy" / "tokenizer.json"), read_tokenizer_text(path, 1 << 20).text);
}

TEST_F(GgufModel, RefusesTemplatesWhoseNamesLeadOut) {
  auto file = tiny_model();
  test::add_tiny_tokenizer(file);
  file.text("tokenizer.chat_template.../../x", "text");
  const auto path = write(file);
  EXPECT_SAYS(message_of<ModelError>([&] { accompanying_files(path); }), "does not name a template");
}

TEST_F(GgufModel, WithoutATokenizerIsStillAModel) {
  const auto path = write(tiny_model());
  EXPECT_TRUE(accompanying_files(path).empty());
  EXPECT_SAYS(tokenizer_refusal(tiny_model()), "has no tokenizer (tokenizer.ggml.tokens)");
}

TEST_F(GgufModel, RefusesTokenizersThatItCannotBuild) {
  const auto with = [&](auto&& change) {
    GgufWriter file = test::tiny_gguf_metadata();
    file.tensor("token_embd.weight", {4, 6}, 0, std::string(96, '\0'));
    change(file);
    return tokenizer_refusal(file);
  };
  const auto tokens = [](auto& file) { file.texts("tokenizer.ggml.tokens", {"a", "b"}); };
  EXPECT_SAYS(with([&](auto& file) {
                tokens(file);
                file.text("tokenizer.ggml.model", "t5");
              }),
              "tokenizer.ggml.model is \"t5\"");
  EXPECT_SAYS(with([&](auto& file) {
                tokens(file);
                file.text("tokenizer.ggml.model", "gpt2");
                file.text("tokenizer.ggml.pre", "falcon");
              }),
              "tokenizer.ggml.pre is \"falcon\", expected one of gpt-2");
  EXPECT_SAYS(with([&](auto& file) {
                tokens(file);
                file.text("tokenizer.ggml.model", "llama");
              }),
              "has no tokenizer.ggml.scores");
  EXPECT_SAYS(with([&](auto& file) {
                tokens(file);
                file.integers("tokenizer.ggml.token_type", {1});
              }),
              "has 1 entries, expected 2");
  EXPECT_SAYS(with([&](auto& file) { file.texts("tokenizer.ggml.tokens", {"a", "a"}); }), "stands twice");
  EXPECT_SAYS(with([&](auto& file) {
                tokens(file);
                file.text("tokenizer.ggml.model", "gpt2");
                file.text("tokenizer.ggml.pre", "gpt-2");
                file.texts("tokenizer.ggml.merges", {"ab"});
              }),
              "tokenizer.ggml.merges has \"ab\", expected two tokens");
  EXPECT_SAYS(with([&](auto& file) {
                file.texts("tokenizer.ggml.tokens", {"a", "\xFF"});
                file.text("tokenizer.ggml.model", "gpt2");
                file.text("tokenizer.ggml.pre", "gpt-2");
                file.texts("tokenizer.ggml.merges", {});
              }),
              "not UTF-8");
}

class SplitGguf : public GgufModel {
 protected:
  static void say_part(GgufWriter& file, std::uint32_t number, std::uint32_t count, std::uint32_t tensors) {
    file.number("split.no", number);
    file.number("split.count", count);
    file.number("split.tensors.count", tensors);
  }
  // Two parts of eleven tensors.
  void SetUp() override {
    first_ = tiny_model();
    second_.tensors.assign(first_.tensors.begin() + 5, first_.tensors.end());
    first_.tensors.resize(5);
    say_part(first_, 0, 2, 11);
    say_part(second_, 1, 2, 11);
    write_both();
  }
  void write_both() const {
    write(first_, "x-00001-of-00002.gguf");
    write(second_, "x-00002-of-00002.gguf");
  }
  std::string refusal_of(const std::string& name) const {
    return message_of<ModelError>([&] { ModelDirectory::open(directory_ / name); });
  }
  GgufWriter first_, second_;
};

TEST_F(SplitGguf, IsReadAsOneModel) {
  const auto model = ModelDirectory::open(directory_ / "x-00001-of-00002.gguf");
  EXPECT_EQ(model.names(), ModelDirectory::open(write(tiny_model())).names());
  EXPECT_EQ(floats(model.find("model.layers.0.mlp.down_proj.weight")).back(), 31.0F);
  EXPECT_EQ(model.weight_files().size(), 2U);
}

TEST_F(SplitGguf, RefusesAPartThatIsMissing) {
  std::filesystem::remove(directory_ / "x-00002-of-00002.gguf");
  EXPECT_SAYS(refusal_of("x-00001-of-00002.gguf"), "file \"x-00002-of-00002.gguf\" is missing");
}

TEST_F(SplitGguf, RefusesOtherPartsThanTheFirst) {
  EXPECT_SAYS(refusal_of("x-00002-of-00002.gguf"),
              "is part 2 of 2, expected the first; give \"x-00001-of-00002.gguf\"");
}

TEST_F(SplitGguf, RefusesAFirstPartOfAnotherName) {
  write(first_, "other.gguf");
  EXPECT_SAYS(refusal_of("other.gguf"), "expected a name that ends in \"-00001-of-00002.gguf\"");
}

TEST_F(SplitGguf, RefusesPartsOfAnotherModel) {
  write(tiny_model(), "x-00002-of-00002.gguf");
  EXPECT_SAYS(refusal_of("x-00001-of-00002.gguf"),
              "expected part 2 of 2 and 11 tensors; give parts of one model");
  second_.tensors.pop_back();
  write_both();
  EXPECT_SAYS(refusal_of("x-00001-of-00002.gguf"), "the parts have 10 tensors, expected 11");
  second_.tensors.push_back(first_.tensors.back());
  write_both();
  EXPECT_SAYS(refusal_of("x-00001-of-00002.gguf"), "stands in two parts");
  second_.text("general.architecture", "mamba");
  write_both();
  EXPECT_SAYS(refusal_of("x-00001-of-00002.gguf"), "differs from that of the first part");
}

}  // namespace
}  // namespace retort::io
