// Takes the place of retort/ops/path.cpp in a test program: what an accelerator would run is run on the CPU.
#include <gtest/gtest.h>

#include "retort/ops/path.h"

namespace retort {

ops::Path ops::path_of(c10::Device) {
  return Path::device;
}

namespace {

TEST(DevicePath, IsTakenOnTheCpu) {
  EXPECT_EQ(ops::path_of(c10::Device(c10::kCPU)), ops::Path::device);
}

}  // namespace
}  // namespace retort
