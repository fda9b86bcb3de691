// Where the values of a small model lie among the zeros, and what reads the padded model back.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <numeric>
#include <optional>

#include "publish/configs_for_tests.h"
#include "publish/counted_model.h"
#include "retort/architecture/counts.h"
#include "retort/architecture/layout.h"
#include "retort/base/error.h"
#include "support/padded_model.h"
#include "support/temporary_directory.h"

namespace retort {
namespace {

using architecture::Config;
using test::config_of;
using Values = std::vector<float>;

constexpr std::string_view kBlock = "model.layers.";

Values floats(const io::TensorView& view) {
  EXPECT_EQ(view.dtype, io::Dtype::f32);
  Values values(view.bytes.size() / sizeof(float));
  std::memcpy(values.data(), view.bytes.data(), view.bytes.size());
  return values;
}

std::vector<std::int64_t> shape_of(const io::TensorView& view) {
  return {view.shape.begin(), view.shape.end()};
}

// A padded model with what it was made from.
struct Opened {
  explicit Opened(const Config& config) : input(config) {
    test::write_counted(config, directory.path());
    files.emplace_back(io::ModelDirectory::open(directory.path()));
    weights.emplace(config, publish::padded(config), files.front());
  }
  std::string name(std::size_t block, const char* tensor) const {
    return std::string(kBlock) + std::to_string(block) + "." + tensor;
  }
  io::TensorView view(std::size_t block, const char* tensor) const {
    return weights->find(name(block, tensor));
  }
  Values values(std::size_t block, const char* tensor) const { return floats(view(block, tensor)); }

  Config input;
  test::TemporaryDirectory directory;
  std::vector<io::ModelDirectory> files;
  std::optional<publish::PaddedWeights> weights;
};

// Two features, two groups of one head of two channels, three channels of an MLP.
Config smallest(const char* architecture, const base::Json& more = base::Json::object()) {
  base::Json keys = {{"hidden_size", 2},         {"intermediate_size", 3},   {"num_hidden_layers", 3},
                     {"num_attention_heads", 2}, {"num_key_value_heads", 2}, {"head_dim", 2}};
  keys.update(more);
  return config_of(architecture, keys);
}

TEST(PaddedWeights, PutZerosBehindWhatABlockHas) {
  auto config = smallest("LlamaForCausalLM", {{"attention_bias", true}, {"mlp_bias", true}});
  test::set_groups(config.blocks[1], 1);
  test::set_width(config.blocks[1], 2);
  const Opened model(config);
  EXPECT_EQ(shape_of(model.view(1, "self_attn.q_proj.weight")), (std::vector<std::int64_t>{4, 2}));
  for (const char* matrix : {"self_attn.q_proj.weight", "self_attn.k_proj.weight", "self_attn.v_proj.weight"})
    EXPECT_EQ(model.values(1, matrix), (Values{1, 2, 3, 4, 0, 0, 0, 0})) << matrix;
  for (const char* bias : {"self_attn.q_proj.bias", "self_attn.k_proj.bias", "self_attn.v_proj.bias"})
    EXPECT_EQ(model.values(1, bias), (Values{1, 2, 0, 0})) << bias;
  EXPECT_EQ(shape_of(model.view(1, "self_attn.o_proj.weight")), (std::vector<std::int64_t>{2, 4}));
  EXPECT_EQ(model.values(1, "self_attn.o_proj.weight"), (Values{1, 2, 0, 0, 3, 4, 0, 0}));
  EXPECT_EQ(model.values(1, "mlp.gate_proj.weight"), (Values{1, 2, 3, 4, 0, 0}));
  EXPECT_EQ(model.values(1, "mlp.up_proj.bias"), (Values{1, 2, 0}));
  EXPECT_EQ(model.values(1, "mlp.down_proj.weight"), (Values{1, 2, 0, 3, 4, 0}));
  for (const char* same : {"self_attn.o_proj.bias", "mlp.down_proj.bias", "input_layernorm.weight"})
    EXPECT_EQ(model.values(1, same), (Values{1, 2})) << same;
}

TEST(PaddedWeights, PutTheHeadsOfLostGroupsLast) {
  auto config =
      smallest("LlamaForCausalLM", {{"num_attention_heads", 4}, {"hidden_size", 4}, {"head_dim", 2}});
  test::set_groups(config.blocks[0], 1);
  const Opened model(config);
  auto expected = Values(32, 0);
  std::iota(expected.begin(), expected.begin() + 16, 1.0F);
  EXPECT_EQ(model.values(0, "self_attn.q_proj.weight"), expected) << "two heads of the group that is left";
  EXPECT_EQ(model.values(0, "self_attn.o_proj.weight"),
            (Values{1, 2,  3,  4,  0, 0, 0, 0, 5,  6,  7,  8,  0, 0, 0, 0,
                    9, 10, 11, 12, 0, 0, 0, 0, 13, 14, 15, 16, 0, 0, 0, 0}));
}

TEST(PaddedWeights, PutZerosInsideOfMatricesThatLieAsOne) {
  auto config = smallest("Phi3ForCausalLM");
  test::set_groups(config.blocks[1], 1);
  test::set_width(config.blocks[1], 2);
  config.blocks[2].attention.reset();
  const Opened model(config);
  EXPECT_EQ(shape_of(model.view(1, "self_attn.qkv_proj.weight")), (std::vector<std::int64_t>{12, 2}));
  EXPECT_EQ(model.values(1, "self_attn.qkv_proj.weight"),
            (Values{1, 2, 3, 4, 0, 0, 0, 0, 5, 6, 7, 8, 0, 0, 0, 0, 9, 10, 11, 12, 0, 0, 0, 0}));
  EXPECT_EQ(model.values(1, "mlp.gate_up_proj.weight"), (Values{1, 2, 3, 4, 0, 0, 5, 6, 7, 8, 0, 0}));
  EXPECT_EQ(model.values(2, "self_attn.qkv_proj.weight"), Values(24, 0));
}

TEST(PaddedWeights, AreZerosWithNormsOfOneWhereAHalfWasLost) {
  auto config = smallest("Qwen3ForCausalLM", {{"attention_bias", true}});
  config.blocks[0].attention.reset();
  config.blocks[2].mlp = std::monostate{};
  const Opened model(config);
  EXPECT_EQ(model.values(0, "self_attn.q_proj.weight"), Values(8, 0));
  EXPECT_EQ(model.values(0, "self_attn.v_proj.bias"), Values(4, 0));
  EXPECT_EQ(model.values(0, "self_attn.o_proj.weight"), Values(8, 0));
  EXPECT_EQ(model.values(2, "mlp.down_proj.weight"), Values(6, 0));
  for (const char* norm : {"input_layernorm.weight", "self_attn.q_norm.weight", "self_attn.k_norm.weight"})
    EXPECT_EQ(model.values(0, norm), (Values{1, 1})) << norm;
  EXPECT_EQ(model.values(2, "post_attention_layernorm.weight"), (Values{1, 1}));
}

TEST(PaddedWeights, StoreNormsAsTheFamilyDoes) {
  auto config = smallest("Gemma3ForCausalLM");
  config.blocks[0].attention.reset();
  config.blocks[1].mlp = std::monostate{};
  const Opened model(config);
  for (const char* norm :
       {"input_layernorm.weight", "self_attn.q_norm.weight", "post_attention_layernorm.weight"})
    EXPECT_EQ(model.values(0, norm), (Values{0, 0})) << norm << " of 1 + w";
  EXPECT_EQ(model.values(1, "pre_feedforward_layernorm.weight"), (Values{0, 0}));
  EXPECT_EQ(model.values(1, "post_feedforward_layernorm.weight"), (Values{0, 0}));
}

TEST(PaddedWeights, ShowWhatIsAsLargeAlreadyAsItLiesInTheFile) {
  auto config = smallest("LlamaForCausalLM");
  config.blocks[1].attention.reset();
  const Opened model(config);
  for (const auto& name : model.files.front().names()) {
    const auto view = model.weights->find(name);
    EXPECT_EQ(view.owner, nullptr) << name;
    EXPECT_EQ(view.bytes.data(), model.files.front().find(name).bytes.data()) << name;
  }
  EXPECT_NE(model.view(1, "self_attn.k_proj.weight").owner, nullptr);
}

TEST(PaddedWeights, TellOfTheFilesWhatIsShown) {
  auto config = smallest("LlamaForCausalLM", {{"tie_word_embeddings", true}});
  config.blocks[1].attention.reset();
  const Opened model(config);
  const auto& weights = *model.weights;
  const auto parameters = architecture::num_parameters(weights.config());
  EXPECT_EQ(weights.total_bytes(), static_cast<std::size_t>(4 * parameters));
  EXPECT_EQ(weights.stored_types(), (io::StoredTypes{{"F32", parameters}}));
  EXPECT_EQ(weights.metadata().at("made"), "by counting");
  EXPECT_EQ(weights.paths(), model.files.front().weight_files());
  EXPECT_TRUE(weights.unread().empty());
  const auto names = weights.names();
  EXPECT_TRUE(std::ranges::is_sorted(names));
  EXPECT_EQ(names.size(), 2U + 3 * 9);
  for (const auto& name : names) {
    EXPECT_TRUE(weights.contains(name));
    EXPECT_TRUE(std::ranges::equal(weights.header(name).shape, weights.find(name).shape));
  }
  EXPECT_FALSE(weights.contains("lm_head.weight"));
  EXPECT_SAYS(test::message_of<base::ModelError>([&] { weights.find("lm_head.weight"); }),
              "has no tensor \"lm_head.weight\"");
}

TEST(PaddedWeights, RefuseFilesOfAnotherModel) {
  auto config = smallest("LlamaForCausalLM");
  const Opened model(config);
  test::set_width(config.blocks[1], 2);
  EXPECT_THROW(publish::PaddedWeights(config, publish::padded(config), model.files.front()),
               base::ModelError);
}

std::string bytes_of_norm(io::Dtype dtype) {
  auto config = smallest("LlamaForCausalLM", {{"num_hidden_layers", 2}});
  config.blocks[0].attention.reset();
  const test::TemporaryDirectory directory;
  static const std::vector<std::byte> kZeros(1 << 12);
  std::vector<io::TensorToWrite> tensors;
  for (const auto& unit : architecture::make_layout(config).units)
    for (const auto& tensor : unit.tensors)
      tensors.push_back(io::tensor_of_bytes(
          tensor.name, dtype, tensor.shape,
          std::span(kZeros).first(io::item_bytes(dtype) * static_cast<std::size_t>(tensor.numel))));
  io::write_weights(directory.path(), tensors);
  base::write_file_atomically(directory.path() / "config.json", architecture::hf_config_json(config));
  const auto files = io::ModelDirectory::open(directory.path());
  const publish::PaddedWeights weights(config, publish::padded(config), files);
  const auto view = weights.find("model.layers.0.input_layernorm.weight");
  EXPECT_EQ(view.dtype, dtype);
  EXPECT_EQ(weights.header("model.layers.0.self_attn.q_proj.weight").dtype, dtype);
  return {reinterpret_cast<const char*>(view.bytes.data()), view.bytes.size()};
}

TEST(PaddedWeights, AreOfTheTypeOfTheFiles) {
  using namespace std::string_literals;
  EXPECT_EQ(bytes_of_norm(io::Dtype::bf16), "\x80\x3F\x80\x3F"s);
  EXPECT_EQ(bytes_of_norm(io::Dtype::f16), "\x00\x3C\x00\x3C"s);
  EXPECT_EQ(bytes_of_norm(io::Dtype::f32), "\x00\x00\x80\x3F\x00\x00\x80\x3F"s);
}

// Those of the source are there, in their order, and all others are zeros or the norms of lost halves.
void expect_same_values(const io::ModelDirectory& source, const io::ModelDirectory& made) {
  for (const auto& name : source.names()) {
    auto before = floats(source.find(name)), after = floats(made.find(name));
    std::erase(after, 0.0F);
    EXPECT_EQ(after, before) << name;
  }
  for (const auto& name : made.names()) {
    if (source.contains(name)) continue;
    const auto values = floats(made.find(name));
    const bool norm = name.find("norm") != std::string::npos;
    EXPECT_TRUE(std::ranges::all_of(values, [&](float v) { return v == 0 || (norm && v == 1); })) << name;
  }
}

TEST(PaddedWeights, AreReadBackAsAModelOfEveryFamily) {
  for (const auto* family : architecture::families()) {
    SCOPED_TRACE(family->architecture);
    const auto config = test::pruned(config_of(*family));
    const test::TemporaryDirectory source, made;
    test::write_counted(config, source.path());
    base::write_file_atomically(source.path() / "tokenizer_config.json", "{}");
    test::write_padded(source.path(), made.path());
    const auto files = io::ModelDirectory::open(made.path());
    std::vector<std::string> notes;
    const auto again = architecture::read_config(made.path(), &notes);
    EXPECT_TRUE(notes.empty()) << notes.front();
    EXPECT_EQ(again, publish::padded(config));
    EXPECT_FALSE(architecture::written_form(again).is_own);
    EXPECT_NO_THROW(architecture::check_tensors(again, files));
    EXPECT_TRUE(files.notes().empty());
    EXPECT_TRUE(std::filesystem::exists(made.path() / "tokenizer_config.json"));
    expect_same_values(io::ModelDirectory::open(source.path()), files);
  }
}

}  // namespace
}  // namespace retort
