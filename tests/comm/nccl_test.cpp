// What goes wrong on accelerators, and what their tests would find.
#include "retort/comm/nccl/library.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "device/accelerator.h"
#include "support/message_of.h"
#include "support/ranks.h"

namespace retort::comm {
namespace {

using test::DeviceBytes;
using test::TestAccelerator;

// Makes a call of the libnccl.so.2 of the tests fail.
void fail_at(int rank, int kind, int calls) {
  void* loaded = ::dlopen(std::getenv("RETORT_NCCL"), RTLD_NOW | RTLD_LOCAL);
  reinterpret_cast<void (*)(int, int, int)>(::dlsym(loaded, "test_nccl_fail"))(rank, kind, calls);
}
constexpr int kError = 1, kHang = 2;

void on_devices(int ranks, const std::function<void(Group&, TestAccelerator&)>& act) {
  test::on_ranks(ranks, [&](Group& group) {
    const auto accelerator = std::make_shared<TestAccelerator>(group.rank());
    accelerator->enter();
    group.set_accelerator(accelerator, nccl::library());
    act(group, *accelerator);
  });
}

// Work of the computation on all of `bytes`.
void compute_on(const DeviceBytes& bytes, std::int64_t size, bool writes) {
  test::device::give(test::device::current_stream(test::device::current_device()),
                     {{bytes.get(), size, writes}}, [] {});
}

// What each rank was told when four calls were made, of which some fail.
std::vector<std::string> told_after_failure(int kind) {
  std::vector<std::string> told(3);
  fail_at(1, kind, 2);
  test::on_ranks(3, [&](Group& group) {
    const auto accelerator = std::make_shared<TestAccelerator>(group.rank());
    accelerator->enter();
    group.set_accelerator(accelerator, nccl::library());
    group.set_patience(0.5);
    const DeviceBytes own(64), all(192);
    try {
      for (int i = 0; i < 4; ++i) {
        group
            .all_gather({own.get(), 64, Type::bytes, Device::accelerator},
                        {all.get(), 192, Type::bytes, Device::accelerator})
            .wait();
        std::vector<std::byte> host(192);
        accelerator->to_host(host.data(), all.get(), 192);
      }
    } catch (const base::PeerError& error) {
      told[static_cast<std::size_t>(group.rank())] = error.what();
    }
  });
  fail_at(-1, 0, 0);
  (void)test::device::take_faults();  // memory goes while nobody knows what became of the call
  return told;
}

TEST(Nccl, AnErrorOfOneRankEndsAllWithItsSentence) {
  for (const auto& sentence : told_after_failure(kError)) {
    EXPECT_SAYS(sentence, "NCCL says: remote process exited or there was a network error");
    EXPECT_SAYS(sentence, "all_gather of 64 bytes of 'world': ");
  }
}

TEST(Nccl, ACallThatDoesNotMoveIsGivenUp) {
  for (const auto& sentence : told_after_failure(kHang))
    EXPECT_SAYS(sentence, "all_gather of 64 bytes of 'world' did not move within");
}

TEST(Nccl, ACallIsTimedByTheAccelerator) {
  on_devices(2, [](Group& group, TestAccelerator& accelerator) {
    const DeviceBytes values(1 << 20);
    group.all_reduce({values.get(), 1 << 18, Type::f32, Device::accelerator}).wait();
    std::byte host;
    accelerator.to_host(&host, values.get(), 1);
    for (int i = 0; i < 1000 && group.log().counts().front().seconds == 0; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    EXPECT_GT(group.log().counts().front().seconds, 0);
  });
}

TEST(Nccl, TheComputationGoesOnWhileACallMoves) {
  on_devices(2, [](Group& group, TestAccelerator&) {
    const DeviceBytes values(1 << 20), other(64);
    auto moving = group.all_reduce({values.get(), 1 << 18, Type::f32, Device::accelerator});
    compute_on(other, 64, true);
    moving.wait();
    compute_on(values, 1 << 20, true);
  });
  EXPECT_TRUE(test::device::take_faults().empty());
}

// What the tests of accelerators stand on: mistakes that were made on purpose are found.
TEST(TestDevice, AResultThatIsUsedBeforeItsCallWasWaitedForIsFound) {
  on_devices(2, [](Group& group, TestAccelerator&) {
    const DeviceBytes values(64);
    auto moving = group.all_reduce({values.get(), 16, Type::f32, Device::accelerator});
    group.barrier();  // of processors: it orders nothing on devices
    compute_on(values, 64, false);
    moving.wait();
  });
  const auto faults = test::device::take_faults();
  ASSERT_FALSE(faults.empty());
  EXPECT_SAYS(faults.front(), "and nothing orders them");
}

#ifndef __SANITIZE_THREAD__  // which finds the mistake too, and rightly fails
// Forgets one of the waits between streams.
class Forgetful final : public Accelerator {
 public:
  Forgetful(int number, Stream forgotten) : whole_(number), forgotten_(forgotten) {}
  void to_host(void* host, const void* from, std::int64_t bytes) override {
    whole_.to_host(host, from, bytes);
  }
  void to_device(void* to, const void* host, std::int64_t bytes) override {
    whole_.to_device(to, host, bytes);
  }
  void enter() override { whole_.enter(); }
  std::shared_ptr<Mark> mark(Stream stream) override { return whole_.mark(stream); }
  void wait(Stream stream, const Mark& mark) override {
    if (stream != forgotten_) whole_.wait(stream, mark);
  }
  void* exchange_handle() override { return whole_.exchange_handle(); }
  std::shared_ptr<void> take(std::int64_t bytes) override { return whole_.take(bytes); }
  void sum_rows(void* rows, int parts, std::int64_t count, Type type, void* sum) override {
    whole_.sum_rows(rows, parts, count, type, sum);
  }

 private:
  TestAccelerator whole_;
  Stream forgotten_;
};

TEST(TestDevice, AWaitThatIsForgottenIsFound) {
  for (const auto forgotten : {Stream::exchange, Stream::computation}) {
    test::on_ranks(2, [&](Group& group) {
      const auto accelerator = std::make_shared<Forgetful>(group.rank(), forgotten);
      accelerator->enter();
      group.set_accelerator(accelerator, nccl::library());
      const DeviceBytes values(64);
      compute_on(values, 64, true);
      group.all_reduce({values.get(), 16, Type::f32, Device::accelerator}).wait();
      compute_on(values, 64, false);
    });
    EXPECT_FALSE(test::device::take_faults().empty());
  }
}

#endif

TEST(TestDevice, TheProcessorCannotTouchItsMemory) {
  const DeviceBytes bytes(64);
  EXPECT_DEATH(static_cast<volatile char*>(bytes.get())[0] = 1, "");
}

// Calls `act` with another value of RETORT_NCCL.
template <typename Act>
void with_variable(const char* value, const Act& act) {
  const std::string before = std::getenv("RETORT_NCCL");
  ::setenv("RETORT_NCCL", value, 1);
  act();
  ::setenv("RETORT_NCCL", before.c_str(), 1);
}

TEST(NcclLibrary, IsTheOneThatIsNamed) {
  const auto library = nccl::library();
  EXPECT_EQ(library->file, std::getenv("RETORT_NCCL"));
  EXPECT_EQ(library->version, 22703);
  with_variable("none", [] { EXPECT_FALSE(nccl::library()); });
}

TEST(NcclLibrary, OneThatIsNotThereOrIsAnotherIsRefused) {
  with_variable("/nowhere/libnccl.so.2", [] {
    const auto message = test::message_of<base::EnvironmentError>([] { (void)nccl::library(); });
    EXPECT_SAYS(message, "RETORT_NCCL: /nowhere/libnccl.so.2: cannot open");
  });
  with_variable("libm.so.6", [] {
    const auto message = test::message_of<base::EnvironmentError>([] { (void)nccl::library(); });
    EXPECT_SAYS(message, "found a library without ncclGetVersion");
  });
}

}  // namespace
}  // namespace retort::comm
