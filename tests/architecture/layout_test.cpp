#include "retort/architecture/layout.h"

#include <set>

#include "configs_for_tests.h"
#include "retort/architecture/counts.h"
#include "retort/base/error.h"

namespace retort::architecture {
namespace {

using test::small_config;

Config odd_config() {
  Config config = small_config();
  config.hidden_size = 36;  // no tensor is a multiple of the alignment
  config.blocks.assign(2, {Attention{3, 1, 6}, DenseMlp{7}});
  return config;
}

TEST(Layout, PutsUntiedWeightsIntoEmbeddingBlocksAndHead) {
  const Layout layout = make_layout(small_config());
  ASSERT_EQ(layout.num_units(), 5);
  EXPECT_EQ(layout.num_blocks(), 3);
  EXPECT_EQ(layout.head_unit(), 4);
  EXPECT_EQ(layout.units[0].tensors.size(), 1U);
  EXPECT_EQ(layout.units[4].tensors[0].name, "model.norm.weight");
  EXPECT_EQ(layout.units[4].tensors[1].name, "lm_head.weight");
  EXPECT_EQ(layout.units[2].block_index, 1);
  EXPECT_EQ(Layout::block_unit(1), 2);
  EXPECT_EQ(layout.head_role(), Role::head);
}

TEST(Layout, PutsTiedWeightsIntoOneUnit) {
  const Layout layout = make_layout(small_config(true));
  ASSERT_EQ(layout.num_units(), 4);
  EXPECT_EQ(layout.num_blocks(), 3);
  EXPECT_EQ(layout.head_unit(), 0);
  EXPECT_EQ(layout.units[0].tensors[1].name, "model.norm.weight");
  EXPECT_EQ(layout.head_role(), Role::embedding);
  EXPECT_FALSE(layout.find("lm_head.weight"));
}

TEST(Layout, NamesAndShapesTheTensorsOfABlockAsHuggingFaceDoes) {
  const Unit block = make_layout(odd_config()).units[2];
  const std::vector<std::pair<std::string, std::vector<std::int64_t>>> expected{
      {"input_layernorm.weight", {36}},      {"self_attn.q_proj.weight", {18, 36}},
      {"self_attn.k_proj.weight", {6, 36}},  {"self_attn.v_proj.weight", {6, 36}},
      {"self_attn.o_proj.weight", {36, 18}}, {"post_attention_layernorm.weight", {36}},
      {"mlp.gate_proj.weight", {7, 36}},     {"mlp.up_proj.weight", {7, 36}},
      {"mlp.down_proj.weight", {36, 7}}};
  ASSERT_EQ(block.tensors.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(block.tensors[i].name, "model.layers.1." + expected[i].first);
    EXPECT_EQ(block.tensors[i].shape, expected[i].second);
  }
}

TEST(Layout, KeepsFusedGroupsTogetherAndAlignsAllElse) {
  for (const Config& config : {odd_config(), small_config(), small_config(true)}) {
    for (const Unit& unit : make_layout(config).units) {
      EXPECT_EQ(unit.size % kAlignment, 0);
      std::int64_t end = 0;
      for (const Tensor& tensor : unit.tensors) {
        const bool fused = tensor.role == Role::key || tensor.role == Role::value || tensor.role == Role::up;
        EXPECT_EQ(tensor.offset, fused ? end : (end + kAlignment - 1) / kAlignment * kAlignment)
            << tensor.name;
        EXPECT_EQ(tensor.numel, tensor.rows() * tensor.cols());
        end = tensor.offset + tensor.numel;
      }
      EXPECT_GE(unit.size, end);
      EXPECT_LT(unit.size - end, kAlignment);
    }
  }
}

TEST(Layout, FindsEveryTensorByName) {
  const Layout layout = make_layout(small_config());
  std::set<std::string> names;
  for (std::size_t u = 0; u < layout.units.size(); ++u)
    for (std::size_t t = 0; t < layout.units[u].tensors.size(); ++t) {
      const std::string& name = layout.units[u].tensors[t].name;
      EXPECT_TRUE(names.insert(name).second);
      const auto place = layout.find(name);
      ASSERT_TRUE(place);
      EXPECT_EQ(place->unit, u);
      EXPECT_EQ(place->tensor, t);
      EXPECT_EQ(layout.at(*place).name, name);
    }
  EXPECT_EQ(names.size(), 3U * 9U + 3U);
  EXPECT_FALSE(layout.find("model.layers.3.mlp.up_proj.weight"));
}

TEST(Layout, LeavesOutWhatABlockDoesNotHave) {
  Config config = small_config();
  config.blocks[0].attention.reset();
  config.blocks[1].mlp = std::monostate{};
  const Layout layout = make_layout(config);
  EXPECT_EQ(layout.units[1].find(Role::query), nullptr);
  EXPECT_EQ(layout.units[1].find(Role::attention_norm), nullptr);
  EXPECT_NE(layout.units[1].find(Role::mlp_norm), nullptr);
  EXPECT_EQ(layout.units[2].tensors.size(), 5U);
  EXPECT_EQ(layout.units[2].find(Role::mlp_norm), nullptr);
}

TEST(Layout, HoldsExactlyTheParametersThatAreCounted) {
  for (const bool tied : {false, true}) {
    const Config config = small_config(tied);
    const Layout layout = make_layout(config);
    const auto counts = parameters_per_unit(config);
    ASSERT_EQ(counts.size(), layout.units.size());
    std::int64_t total = 0;
    for (std::size_t i = 0; i < counts.size(); ++i) {
      EXPECT_EQ(layout.units[i].numel(), counts[i]);
      total += layout.units[i].size;
    }
    EXPECT_EQ(layout.size(), total);
  }
}

TEST(Layout, HasNoPlaceForExpertsYet) {
  Config config = small_config();
  config.blocks[0].mlp = ExpertsMlp{4, 2, 8};
  EXPECT_THROW(make_layout(config), base::InternalError);
}

TEST(Layout, NamesEveryRole) {
  EXPECT_EQ(name(Role::embedding), "embedding");
  EXPECT_EQ(name(Role::mlp_norm), "mlp_norm");
  EXPECT_EQ(name(Role::head), "head");
  EXPECT_TRUE(is_norm(Role::final_norm));
  EXPECT_FALSE(is_norm(Role::gate));
}

}  // namespace
}  // namespace retort::architecture
