#include "retort/ops/tensor_allocator.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace retort
