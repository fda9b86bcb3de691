#include "retort/shard/tensor_buffer.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <vector>

namespace retort::shard {
namespace {

TEST(TensorBuffer, SaysWhereATensorLies) {
  const auto x = at::zeros({3, 4}, at::kBFloat16);
  const auto buffer = buffer_of(x);
  EXPECT_EQ(buffer.data, x.data_ptr());
  EXPECT_EQ(buffer.bytes(), 24);
  EXPECT_EQ(buffer.device, comm::Device::cpu);
}

// The only device of this machine stands for an accelerator.
TEST(TensorBuffer, MemoryOfADeviceIsCopiedBothWays) {
  const auto memory = memory_of(at::kCPU);
  const auto x = at::arange(1000, at::kFloat);
  std::vector<float> host(1000);
  memory.to_host(host.data(), x.const_data_ptr(), 4000);
  EXPECT_EQ(host[999], 999);
  host[0] = 7;
  memory.to_device(x.mutable_data_ptr(), host.data(), 4000);
  EXPECT_EQ(x[0].item<float>(), 7);
}

}  // namespace
}  // namespace retort::shard
