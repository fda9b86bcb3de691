// Kernels for NVIDIA's accelerators as NVRTC of the wheel compiles them, which needs no accelerator.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "retort/kernels/cuda/compiler.h"
#include "support/kernel_names.h"
#include "support/message_of.h"

namespace retort {
namespace {

namespace cuda = kernels::cuda;

class KernelCompiler : public testing::Test {
 protected:
  void SetUp() override {
    const std::filesystem::path folder(RETORT_WHEEL_NVRTC);
    ASSERT_TRUE(::dlopen((folder / "libnvrtc-builtins.so.13.0").c_str(), RTLD_NOW)) << ::dlerror();
    void* loaded = ::dlopen((folder / "libnvrtc.so.13").c_str(), RTLD_NOW);
    ASSERT_TRUE(loaded) << ::dlerror();
    cuda::find_compiler(loaded, call_);
  }
  cuda::Functions call_{};
};

TEST_F(KernelCompiler, CompilesEveryKernelThatIsLaunched) {
  for (const bool bf16 : {false, true})
    for (const auto& name : test::kernel_names(bf16 ? 8 : 4)) {
      const auto kernel = cuda::compiled(call_, name, bf16, 90);
      EXPECT_EQ(kernel.code.substr(1, 3), "ELF") << name;
      EXPECT_NE(kernel.code.find(kernel.name), std::string::npos) << name;
    }
}

TEST_F(KernelCompiler, CompilesForTheOldestAndTheNewestDeviceThatItKnows) {
  int count = 0;
  ASSERT_EQ(call_.nvrtcGetNumSupportedArchs(&count), cuda::kSuccess);
  std::vector<int> archs(static_cast<std::size_t>(count));
  ASSERT_EQ(call_.nvrtcGetSupportedArchs(archs.data()), cuda::kSuccess);
  for (const int arch : {archs.front(), archs.back()})
    for (const char* name : {"logit_losses<8, 2>", "rms_norm_backward<8, 1>"})
      EXPECT_FALSE(cuda::compiled(call_, name, true, arch).code.empty()) << name << arch;
}

TEST_F(KernelCompiler, SaysWhatIsWrong) {
  const auto message =
      test::message_of<base::InternalError>([&] { cuda::compiled(call_, "no_such_kernel<1>", true, 90); });
  EXPECT_NE(message.find("no_such_kernel"), std::string::npos) << message;
}

}  // namespace
}  // namespace retort
