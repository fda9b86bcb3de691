// What goes wrong on accelerators, and what their tests would find.
#include "retort/comm/nccl/library.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "device/accelerator.h"
#include "retort/base/loaded_library.h"
#include "support/message_of.h"
#include "support/ranks.h"
#include "support/temporary_directory.h"

namespace retort::comm {
namespace {

using test::DeviceBytes;
using test::TestAccelerator;

// What the libnccl.so.2 of the tests has beside NCCL's functions.
template <typename Function>
Function* of_test_library(const char* name) {
  void* loaded = ::dlopen(std::getenv("RETORT_NCCL"), RTLD_NOW | RTLD_LOCAL);
  return reinterpret_cast<Function*>(::dlsym(loaded, name));
}

// Makes a call fail.
void fail_at(int rank, int kind, int calls) {
  of_test_library<void(int, int, int)>("test_nccl_fail")(rank, kind, calls);
}
constexpr int kError = 1, kHang = 2;

// Makes calls stand still where they would move.
void hold_calls(bool held) {
  of_test_library<void(int)>("test_nccl_hold")(held ? 1 : 0);
}
int calls_held() {
  return of_test_library<int()>("test_nccl_held")();
}

void on_devices(int ranks, const std::function<void(Group&, TestAccelerator&)>& act) {
  test::on_ranks(ranks, [&](Group& group) {
    const auto accelerator = std::make_shared<TestAccelerator>(group.rank());
    accelerator->enter();
    group.job().set_accelerator(accelerator, nccl::library());
    act(group, *accelerator);
  });
}

// Work of the computation on all of `bytes`.
void compute_on(const DeviceBytes& bytes, std::int64_t size, bool writes) {
  test::device::give(test::device::current_stream(test::device::current_device()),
                     {{bytes.get(), size, writes}}, [] {});
}

// What each rank was told when four calls were made, of which some fail.
std::vector<std::string> told_after_failure(int kind, double patience_seconds) {
  std::vector<std::string> told(3);
  fail_at(1, kind, 2);
  test::on_ranks(3, [&](Group& group) {
    const auto accelerator = std::make_shared<TestAccelerator>(group.rank());
    accelerator->enter();
    group.job().set_accelerator(accelerator, nccl::library());
    group.job().set_patience(patience_seconds);
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
  for (const auto& sentence : told_after_failure(kError, 20)) {
    EXPECT_SAYS(sentence, "NCCL says: remote process exited or there was a network error");
    EXPECT_SAYS(sentence, "all_gather of 64 bytes of 'world': ");
  }
}

TEST(Nccl, ACallThatDoesNotMoveIsGivenUp) {
  for (const auto& sentence : told_after_failure(kHang, 0.5))
    EXPECT_SAYS(sentence, "all_gather of 64 bytes of 'world' did not move within");
}

// A rank that fails by itself leaves its groups before anybody can be told.
TEST(Nccl, ARankThatThrowsIsNotWaitedForAndTheOthersHearIt) {
  std::vector<std::string> heard(3);
  const auto act = [&](Group& group, TestAccelerator& accelerator) {
    group.job().set_patience(5);
    const DeviceBytes own(64), all(192);
    const auto gather = [&] {
      group
          .all_gather({own.get(), 64, Type::bytes, Device::accelerator},
                      {all.get(), 192, Type::bytes, Device::accelerator})
          .wait();
    };
    gather();
    std::byte host;
    accelerator.to_host(&host, all.get(), 1);
    if (group.rank() == 1) throw base::StorageError("the disk is full.");
    heard[static_cast<std::size_t>(group.rank())] = test::message_of<base::PeerError>(gather);
  };
  EXPECT_THROW(on_devices(3, act), base::StorageError);
  EXPECT_EQ(heard, (std::vector<std::string>{"rank 1: the disk is full.", "", "rank 1: the disk is full."}));
  EXPECT_TRUE(test::device::take_faults().empty());
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

// What a computation waits is the device's, not the processor's, which is told at once.
TEST(Nccl, AComputationThatWaitsForACallIsTimedByTheAccelerator) {
  hold_calls(true);
  const std::shared_ptr<void> release(nullptr, [](void*) { hold_calls(false); });
  on_devices(2, [](Group& group, TestAccelerator& accelerator) {
    const DeviceBytes values(64);
    group.all_reduce({values.get(), 16, Type::f32, Device::accelerator}).wait();
    EXPECT_EQ(group.log().counts().front().exposed_seconds, 0) << "it has not passed the call";
    for (int tries = 0; tries < 1000 && calls_held() < 2; ++tries)
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    group.barrier();
    hold_calls(false);
    std::byte host;
    accelerator.to_host(&host, values.get(), 1);
    const auto counts = group.log().counts();
    const auto reduced = std::ranges::find(counts, Op::all_reduce, &CollectiveCount::op);
    EXPECT_GT(reduced->exposed_seconds, 0.05);
    EXPECT_EQ(reduced->calls, 1);
  });
}

// The calls of both ranks end when both have computed, and were told where their results are.
TEST(Nccl, TheComputationGoesOnWhileACallMoves) {
  hold_calls(true);
  const std::shared_ptr<void> release(nullptr, [](void*) { hold_calls(false); });
  on_devices(2, [](Group& group, TestAccelerator&) {
    const DeviceBytes values(1 << 20), other(64);
    auto moving = group.all_reduce({values.get(), 1 << 18, Type::f32, Device::accelerator});
    for (int tries = 0; tries < 1000 && calls_held() < 2; ++tries)
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    compute_on(other, 64, true);
    test::device::synchronize(test::device::current_stream(group.rank()));
    moving.wait();
    compute_on(values, 1 << 20, true);
    EXPECT_EQ(calls_held(), 2) << "something waited for a call that moves";
    group.barrier();
    hold_calls(false);
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
      group.job().set_accelerator(accelerator, nccl::library());
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

// What is taken where no variable names a file.  Each case is a process of its own: what is mapped stays.
class NcclLibraryFound : public testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

using Files = std::vector<std::filesystem::path>;
constexpr const char *kTorch = "torch/lib/libtorch_cpu.so", *kWheel = "nvidia/nccl/lib/libnccl.so.2",
                     *kRccl = "torch/lib/librccl.so.1", *kElsewhere = "elsewhere/libnccl.so.2";

// Makes a folder of packages with these files and maps some.  Says what is taken then, or why nothing.
[[noreturn]] void say_what_is_taken(const Files& files, const Files& mapped) {
  {
    const test::TemporaryDirectory packages;
    const std::filesystem::path nccl = std::getenv("RETORT_NCCL"),
                                other = base::file_of_function(
                                    reinterpret_cast<const void*>(&test::device::take_faults));
    ::unsetenv("RETORT_NCCL");
    for (const auto& file : files) {
      std::filesystem::create_directories((packages / file).parent_path());
      std::filesystem::copy_file(file == kTorch ? other : nccl, packages / file);
    }
    for (const auto& file : mapped)
      if (!::dlopen((packages / file).c_str(), RTLD_NOW | RTLD_GLOBAL))
        std::fprintf(stderr, "%s\n", ::dlerror());
    try {
      std::fprintf(stderr, "takes %s.\n", nccl::library()->file.c_str());
    } catch (const base::EnvironmentError& error) {
      std::fprintf(stderr, "%s\n", error.what());
    }
  }
  std::exit(0);
}

// By the system, whatever else this process has mapped.
bool is_installed(const char* name) {
  void* loaded = ::dlmopen(LM_ID_NEWLM, name, RTLD_LAZY);
  if (loaded) ::dlclose(loaded);
  return loaded != nullptr;
}

TEST_F(NcclLibraryFound, IsTheSystemsOrTheErrorSaysWhatToInstall) {
  const char* const expected =
      is_installed("libnccl.so.2") ? "^takes libnccl\\.so\\.2\\.\n$"
      : is_installed("librccl.so.1")
          ? "^takes librccl\\.so\\.1\\.\n$"
          : "^ranks on accelerators: expected libnccl.so.2 or librccl.so.1, found neither; install RCCL or "
            "NCCL \\(pip install nvidia-nccl-cu13\\), name the file in RETORT_NCCL, or [^.]*\\.\n$";
  EXPECT_EXIT(say_what_is_taken({}, {}), testing::ExitedWithCode(0), expected);
}

TEST_F(NcclLibraryFound, BesideTorchIsThatOfItsWheel) {
  EXPECT_EXIT(say_what_is_taken({kTorch, kWheel, kRccl}, {kTorch}), testing::ExitedWithCode(0),
              "^takes /.*/nvidia/nccl/lib/libnccl\\.so\\.2\\.\n$");
  EXPECT_EXIT(say_what_is_taken({kTorch, kRccl}, {kTorch}), testing::ExitedWithCode(0),
              "^takes /.*/torch/lib/librccl\\.so\\.1\\.\n$");
}

TEST_F(NcclLibraryFound, MappedIsTakenBeforeThatOfTheWheel) {
  EXPECT_EXIT(say_what_is_taken({kTorch, kWheel, kElsewhere}, {kTorch, kElsewhere}),
              testing::ExitedWithCode(0), "^takes libnccl\\.so\\.2\\.\n$");
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
