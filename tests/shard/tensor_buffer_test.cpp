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

}  // namespace
}  // namespace retort::shard
