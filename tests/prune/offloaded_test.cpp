// A stage prune of a model that lies in the memory of the machine makes what it makes of one on the device.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "device/test_device.h"
#include "device/torch_device.h"
#include "retort/calibrate/state_bytes.h"
#include "retort/ops/device_memory.h"
#include "retort/prune/searched.h"
#include "support/models_for_tests.h"
#include "support/random_text.h"

namespace retort {
namespace {

using prune::PruneOptions;

class Offloaded : public testing::TestWithParam<bool> {
 protected:
  struct Made {
    architecture::Kept kept;
    double objective = 0;
    std::vector<std::string> hashes;  // of the model, and of those that are tied with it
    std::int64_t peak_bytes = 0;
  };
  static PruneOptions options() {
    PruneOptions options;
    options.target.parameters_fraction = 0.85;
    options.width_multiple = 16;
    options.heads = false;
    options.search.tolerance = 0.1;
    options.search.finalists = 2;
    if (GetParam()) {  // step by step
      options.units = prune::Units::uniform;
      options.search.method = prune::SearchMethod::greedy;
      options.channel_ranking = calibrate::ChannelRanking::taylor;
      options.hidden = true;
    }
    return options;
  }
  Made made(const model::Weights& input) const {
    const auto options = Offloaded::options();
    record::Observer observer;
    ops::reset_peak_tensor_bytes(device_);
    const prune::PruneSetup setup{input, text_, options, observer};
    std::vector<std::string> hashes;
    const auto result =
        prune::prune_searched(setup, [&](const auto& tied) { hashes.push_back(tied.content_hash()); });
    hashes.push_back(result.weights.content_hash());
    return {result.report.kept, result.report.evaluation.mean.objective, hashes,
            ops::peak_tensor_bytes(device_)};
  }

  const at::Device device_ = test::torch_device(0);
  const model::Weights on_host_ = test::tiny_model(test::tiny_config(2, 64, /*tied=*/!GetParam()));
  const std::vector<calibrate::SourceText> text_ = test::random_domains(40, GetParam() ? 8 : 16, 32);
};

TEST_P(Offloaded, MakesTheSameWithoutTheWeightsOnTheDevice) {
  auto on_device = on_host_;
  for (auto& unit : on_device.units) unit = unit.to(device_);
  const auto expected = made(on_device);
  on_device.units.clear();
  auto input = on_host_;
  model::compute_with_copies(input, device_);
  const auto found = made(input);
  EXPECT_EQ(found.kept, expected.kept);
  EXPECT_EQ(found.objective, expected.objective);
  EXPECT_EQ(found.hashes, expected.hashes);
  EXPECT_EQ(found.hashes.size() > 1, !GetParam());
  const auto item = input.item_bytes();
  const auto gone = calibrate::weight_bytes(input.config, item, calibrate::OnDevice::all) -
                    calibrate::weight_bytes(input.config, item, calibrate::OnDevice::block_and_head);
  EXPECT_LE(found.peak_bytes, expected.peak_bytes - gone);
  EXPECT_TRUE(test::device::take_faults().empty());
}

INSTANTIATE_TEST_SUITE_P(StepsOrSpace, Offloaded, testing::Bool());

}  // namespace
}  // namespace retort
