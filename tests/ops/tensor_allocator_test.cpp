#include "retort/ops/tensor_allocator.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <limits>
#include <vector>

namespace retort {
namespace {

constexpr std::int64_t kMB = 1'000'000;

at::Tensor touched(std::int64_t bytes) {
  return at::ones({bytes / 4}, at::kFloat);
}

TEST(TensorAllocator, CountsWhatIsAskedFor) {
  ops::install_tensor_allocator();
  const auto before = ops::live_tensor_bytes();
  {
    const auto x = touched(40 * kMB);
    EXPECT_EQ(ops::live_tensor_bytes() - before, 40 * kMB);
  }
  EXPECT_EQ(ops::live_tensor_bytes(), before);
}

TEST(TensorAllocator, GivesAFreedBlockToTheNextTensorOfItsSize) {
  ops::install_tensor_allocator();
  auto x = touched(40 * kMB);
  const auto* const memory = x.const_data_ptr();
  x.reset();
  x = touched(39 * kMB);
  EXPECT_EQ(x.const_data_ptr(), memory);
}

std::int64_t resident_bytes() {
  std::ifstream in("/proc/self/statm");
  std::int64_t size = 0, resident = 0;
  in >> size >> resident;
  return resident * ::sysconf(_SC_PAGESIZE);
}

TEST(TensorAllocator, GivesBackWhatWaitsWhereMemoryIsShort) {
  ops::install_tensor_allocator();
  std::int64_t in_use = 0;
  {
    std::vector<at::Tensor> many;
    for (int i = 0; i < 3; ++i) many.push_back(touched(100 * kMB));
    in_use = resident_bytes();
  }  // they wait, and no tensor of another size can use them
  ops::limit_waiting_blocks(ops::live_tensor_bytes() + 330 * kMB);
  const auto other = touched(250 * kMB);
  ops::limit_waiting_blocks(std::numeric_limits<std::int64_t>::max());
  EXPECT_LT(resident_bytes() - in_use, 45 * kMB);
}

// Libraries take tens of megabytes; tensors that come later are not among them.
TEST(TensorAllocator, KnowsWhatTheProcessHadBeforeItsFirstTensor) {
  ops::install_tensor_allocator();
  const auto base = ops::process_base_bytes();
  EXPECT_GT(base, 10 * kMB);
  EXPECT_LE(base, ops::process_peak_bytes());
  const auto x = touched(400 * kMB);
  ops::install_tensor_allocator();
  EXPECT_EQ(ops::process_base_bytes(), base);
}

}  // namespace
}  // namespace retort
