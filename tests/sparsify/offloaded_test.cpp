// A stage sparsify of a model that lies in the memory of the machine makes what it makes of one on the
// device.
#include <gtest/gtest.h>

#include "device/test_device.h"
#include "device/torch_device.h"
#include "retort/calibrate/state_bytes.h"
#include "retort/ops/device_memory.h"
#include "retort/sparsify/sparsify.h"
#include "support/models_for_tests.h"
#include "support/random_text.h"

namespace retort {
namespace {

struct Made {
  std::string hash;
  std::vector<std::string> sparse_layers;
  base::Json damage;
  std::int64_t peak_bytes = 0;
};

TEST(OffloadedSparsify, MakesTheSameWithoutTheWeightsOnTheDevice) {
  const auto device = test::torch_device(0);
  const auto on_host = test::tiny_model(test::tiny_config(3, 64));
  const auto text = calibrate::split_by_document(test::random_domains(40, 8, 48));
  sparsify::SparsifyOptions options;
  options.share = 0.6;  // layers are measured alone and put back
  options.layers = {"o_proj", "down_proj"};
  const auto made = [&](model::Weights input) {
    record::Observer observer;
    ops::reset_peak_tensor_bytes(device);
    const auto result = sparsify::sparsify(std::move(input), text, options, {}, observer);
    const auto& weights = result.weights;
    return Made{weights.content_hash(), weights.lineage.sparse_layers, result.report.at("damage"),
                ops::peak_tensor_bytes(device)};
  };
  auto on_device = on_host;
  for (auto& unit : on_device.units) unit = unit.to(device);
  const auto expected = made(std::move(on_device));
  auto input = model::converted(on_host, on_host.units.front().scalar_type());
  model::compute_with_copies(input, device);
  const auto found = made(std::move(input));
  EXPECT_EQ(found.hash, expected.hash);
  EXPECT_EQ(found.sparse_layers, expected.sparse_layers);
  EXPECT_EQ(found.damage, expected.damage);
  const auto bytes = [&](calibrate::OnDevice what) {
    return calibrate::weight_bytes(on_host.config, on_host.item_bytes(), what);
  };
  const auto gone = bytes(calibrate::OnDevice::all) - bytes(calibrate::OnDevice::block_and_head);
  EXPECT_LE(found.peak_bytes, expected.peak_bytes - gone);
  EXPECT_TRUE(test::device::take_faults().empty());
}

}  // namespace
}  // namespace retort
