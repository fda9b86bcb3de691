// Which bodies of the operations serve which tensors.
#include "retort/ops/path.h"

#include <gtest/gtest.h>

namespace retort {
namespace {

TEST(PathTest, IsThatOfTheLoopsOnACpuOnly) {
  EXPECT_EQ(ops::path_of(c10::Device(c10::kCPU)), ops::Path::cpu);
  EXPECT_NE(ops::path_of(c10::Device(c10::kCUDA, 0)), ops::Path::cpu);  // cuda, where there is one
  EXPECT_EQ(ops::path_of(c10::Device(c10::kPrivateUse1, 0)), ops::Path::device);
}

}  // namespace
}  // namespace retort
