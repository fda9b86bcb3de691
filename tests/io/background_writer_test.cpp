#include "retort/io/background_writer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <stdexcept>
#include <vector>

#include "retort/base/error.h"

namespace retort {
namespace {

TEST(BackgroundWriter, RunsJobsInTheirOrder) {
  std::vector<int> written;
  io::BackgroundWriter writer(2);
  for (int i = 0; i < 50; ++i) writer.push([&written, i] { written.push_back(i); });
  writer.wait();
  ASSERT_EQ(written.size(), 50U);
  for (int i = 0; i < 50; ++i) EXPECT_EQ(written[static_cast<std::size_t>(i)], i);
}

TEST(BackgroundWriter, QueueIsBounded) {
  std::promise<void> gate;
  const auto open = gate.get_future().share();
  std::atomic<int> pushed = 0;
  io::BackgroundWriter writer(3);
  std::atomic<bool> begun = false;
  writer.push([&] {
    begun = true;
    open.wait();
  });
  while (!begun) std::this_thread::yield();
  std::thread producer([&] {
    for (int i = 0; i < 10; ++i) {
      writer.push([] {});
      ++pushed;
    }
  });
  while (pushed < 3) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(pushed, 3) << "the fourth waits for room";
  gate.set_value();
  producer.join();
  writer.wait();
  EXPECT_EQ(pushed, 10);
}

TEST(BackgroundWriter, ErrorsReachTheCaller) {
  io::BackgroundWriter writer(4);
  std::atomic<int> later = 0;
  writer.push([] { throw base::StorageError("disk full"); });
  EXPECT_THROW(writer.wait(), base::StorageError);
  EXPECT_THROW(writer.push([&] { ++later; }), base::StorageError);
  EXPECT_THROW(writer.wait(1), base::StorageError);
  EXPECT_EQ(later, 0);
}

TEST(BackgroundWriter, WaitsForAJobAndNotForThoseAfterIt) {
  std::promise<void> gate;
  const auto open = gate.get_future().share();
  io::BackgroundWriter writer(4);
  std::atomic<bool> done = false;
  const auto first = writer.push([&] { done = true; });
  writer.push([&] { open.wait(); });
  writer.wait(first);
  EXPECT_TRUE(done);
  gate.set_value();
}

}  // namespace
}  // namespace retort
