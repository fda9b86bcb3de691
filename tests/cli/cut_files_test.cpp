// Pages that are gone when they are read, in a process of their own.
#include "cli/cut_files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <string>

#include "retort/base/error.h"
#include "support/temporary_directory.h"

namespace retort::test {
namespace {

constexpr std::size_t kPage = 4096;

// Maps three pages of the file, cuts it to one, and reads the last.
void read_what_was_cut(const std::string& path) {
  cli::end_where_a_file_was_cut();
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT, 0600);
  ASSERT_EQ(::ftruncate(file, 3 * kPage), 0);
  auto* const bytes =
      static_cast<const volatile char*>(::mmap(nullptr, 3 * kPage, PROT_READ, MAP_SHARED, file, 0));
  ASSERT_NE(bytes, MAP_FAILED);
  ASSERT_EQ(::truncate(path.c_str(), kPage), 0);
  (void)bytes[0];
  (void)bytes[2 * kPage];
}

int code(base::ExitCode of) {
  return static_cast<int>(of);
}

TEST(CutFiles, EndTheProcessWithASentenceThatNamesThem) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  const TemporaryDirectory directory;
  const auto path = (directory / "a model.safetensors").string();
  EXPECT_EXIT(read_what_was_cut(path), testing::ExitedWithCode(code(base::ExitCode::model)),
              "retort: error: .*/a model.safetensors: it was cut short by another program while it was read");
}

TEST(CutFiles, OfSharedMemoryAreMemoryThatIsShort) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  if (!std::filesystem::is_directory("/dev/shm")) GTEST_SKIP() << "this machine has no /dev/shm";
  const auto path = "/dev/shm/retort_test_" + std::to_string(::getpid());
  EXPECT_EXIT(read_what_was_cut(path), testing::ExitedWithCode(code(base::ExitCode::memory)),
              "retort_test_[0-9]+: shared memory is full");
  ::unlink(path.c_str());
}

TEST(CutFiles, LeaveOtherBusErrorsToTheKernel) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(
      {
        cli::end_where_a_file_was_cut();
        ::raise(SIGBUS);
      },
      testing::KilledBySignal(SIGBUS), "");
}

}  // namespace
}  // namespace retort::test
