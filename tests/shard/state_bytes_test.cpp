// What a rank holds of a model that is trained, by the allocator: its share of the state, and no whole model
// while it loads.
#include <gtest/gtest.h>

#include "retort/comm/recorded/recorded_group.h"
#include "retort/ops/tensor_allocator.h"
#include "retort/optim/adamw.h"
#include "retort/shard/parameters.h"
#include "support/reference_model.h"

namespace retort {
namespace {

constexpr std::int64_t kMaster = 4, kCopy = 2, kGradient = 4, kMoments = 8;  // bytes of an element

struct Bytes {
  std::int64_t state = 0, peak_of_loading = 0, unit = 0;
};

// Of one of so many ranks that share nothing; `unit`: of the largest one, whole.
Bytes bytes_of(const architecture::Config& config, int ranks) {
  const auto world = comm::recorded_group(
      std::make_shared<comm::Recording>(),
      {.rank = ranks / 2, .size = ranks, .ranks_per_node = 1, .color = [](auto level, int rank) {
         return level == "shard" ? 0 : rank;
       }});
  const auto groups = shard::make_groups(*world, ranks);
  const auto before = ops::live_tensor_bytes();
  ops::reset_peak_tensor_bytes();
  const auto parameters = shard::sharded_parameters(model::random_source(config, 1), shard::Use::trained,
                                                    at::kBFloat16, at::kCPU, groups);
  Bytes bytes{.state = 0, .peak_of_loading = ops::peak_tensor_bytes() - before, .unit = 0};
  std::vector<optim::UnitRange> ranges;
  for (std::int64_t unit = 0; unit < parameters->layout().num_units(); ++unit) {
    ranges.push_back(parameters->range(unit));
    bytes.unit =
        std::max(bytes.unit, kMaster * parameters->layout().units[static_cast<std::size_t>(unit)].size);
  }
  const optim::AdamW optimizer(parameters->layout(), ranges, {.lr = 1e-3}, at::kCPU);
  bytes.state = ops::live_tensor_bytes() - before;
  return bytes;
}

TEST(StateBytes, OfARankAreItsShareOfTheModel) {
  ops::install_tensor_allocator();
  const auto config = test::config_of({.vocab = 512, .hidden = 64, .width = 192, .blocks = 12});
  const auto elements = architecture::make_layout(config).size();
  const auto whole = elements * (kMaster + kCopy + kGradient + kMoments);
  for (const int ranks : {2, 4, 8, 16}) {
    SCOPED_TRACE(ranks);
    const auto bytes = bytes_of(config, ranks);
    EXPECT_GE(bytes.state, whole / ranks - whole / 100);
    EXPECT_LE(bytes.state, whole / ranks + whole / 100) << "beside the padding of units";
    // The moments come later.  Of a unit no more is read than the rank's part, which is there twice.
    EXPECT_LE(bytes.peak_of_loading,
              (elements * (kMaster + kCopy + kGradient) + 2 * bytes.unit) / ranks + whole / 200);
  }
}

}  // namespace
}  // namespace retort
