#include "retort/sparsify/finished_blocks.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "retort/base/error.h"
#include "retort/io/safetensors.h"
#include "support/temporary_directory.h"

namespace retort {
namespace {

using sparsify::FinishedBlocks;
using sparsify::FoundBlock;
using sparsify::LayerDamage;
using sparsify::LayerResult;

sparsify::Damage damage() {
  sparsify::Damage damage;
  damage.mean = {.objective = 0.375, .delta_log_perplexity = 0.25, .kl = 0.125};
  damage.sources = {{.objective = 0.5}, {.objective = 0.25}};
  damage.interval = {0.125, 0.75};
  return damage;
}

constexpr const char* kDamage =
    R"("objective":0.375,"interval":[0.125,0.75],"delta_log_perplexity":0.25,"kl":0.125,)"
    R"("worst_domain":"first","domains":{"first":0.5,"second":0.25})";

class FinishedBlocksOnDisk : public testing::Test {
 protected:
  FinishedBlocks blocks() const { return {directory_ / "scratch", "this", {"first", "second"}, *group_}; }
  std::string on_disk(const char* file) const {
    return io::SafetensorsFile::open(directory_ / "scratch" / file).metadata().at("report");
  }
  test::TemporaryDirectory directory_;
  const std::unique_ptr<comm::Group> group_ = comm::single_group();
};

// A stage goes on with what an earlier program finished: these texts do not change.
TEST_F(FinishedBlocksOnDisk, HoldTheDamageOfEachLayer) {
  const LayerDamage layer{.name = "q", .damage = damage()};
  blocks().write("measured", 2, FoundBlock<LayerDamage>{.layers = {layer}, .seconds = 1.5}, {});
  EXPECT_EQ(
      on_disk("measured-00002.safetensors"),
      base::join(R"({"layers":[{)", kDamage, R"(,"name":"q","sparse":false}],"damage":null,"seconds":1.5})"));
  const auto kept = blocks().read<LayerDamage>("measured", 2, {});
  ASSERT_TRUE(kept);
  const auto* found = &kept->found;
  EXPECT_EQ(found->seconds, 1.5);
  EXPECT_FALSE(found->damage);
  ASSERT_EQ(found->layers.size(), 1U);
  EXPECT_EQ(to_json(found->layers[0], {"first", "second"}), to_json(layer, {"first", "second"}));
}

TEST_F(FinishedBlocksOnDisk, HoldWhatBecameOfEachLayerAndOfTheBlock) {
  const LayerResult layer{.name = "down",
                          .rows = 2,
                          .cols = 4,
                          .loss = 0.5,
                          .dampening = 0.01,
                          .identity_residual = 0.25,
                          .kept_share_before = 0.5,
                          .kept_share_after = 0.75,
                          .order = {1, 0, 3, 2},
                          .polish = sparsify::PolishResult{true, 0.5, 0.25, 7},
                          .relative_error = 0.125,
                          .seconds = 2.5};
  const sparsify::CumulativeDamage cumulative{.up_to_block = 1, .damage = damage()};
  const auto weights_W = at::arange(8, at::kFloat);
  blocks().write("sparse", 1,
                 FoundBlock<LayerResult>{.layers = {layer}, .damage = cumulative, .seconds = 3.5}, weights_W);
  EXPECT_EQ(on_disk("sparse-00001.safetensors"),
            base::join(R"({"layers":[{"name":"down","rows":2,"cols":4,"loss":0.5,"dampening":0.01,)"
                       R"("identity_residual":0.25,"kept_share_before":0.5,"kept_share_after":0.75,)"
                       R"("polish":{"kept":true,"held_out_error_before":0.5,"held_out_error_after":0.25,)"
                       R"("iterations":7},"relative_error":0.125,"seconds":2.5,"order":[1,0,3,2]}],)"
                       R"("damage":{)",
                       kDamage, R"(,"up_to_block":1},"seconds":3.5})"));
  const auto kept = blocks().read<LayerResult>("sparse", 1, weights_W);
  ASSERT_TRUE(kept && kept->found.damage);
  EXPECT_TRUE(at::equal(kept->weights_W, weights_W));
  const auto* found = &kept->found;
  EXPECT_EQ(to_json(*found->damage, {"first", "second"}), to_json(cumulative, {"first", "second"}));
  ASSERT_EQ(found->layers.size(), 1U);
  EXPECT_EQ(saved(found->layers[0]), saved(layer));
}

TEST_F(FinishedBlocksOnDisk, AreNoneWithoutAFolder) {
  FinishedBlocks nowhere({}, "this", {"first"}, *group_);
  nowhere.write("measured", 0, FoundBlock<LayerDamage>{}, {});
  EXPECT_FALSE(nowhere.read<LayerDamage>("measured", 0, {}));
}

}  // namespace
}  // namespace retort
