// A program linked with the wheel's libtorch: it computes, in parallel, with exactly one OpenMP runtime.

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <set>
#include <string>

namespace {

std::set<std::string> mapped_files(const std::string& part_of_name) {
  std::set<std::string> files;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const std::size_t path = line.find('/');
    if (path != std::string::npos && line.find(part_of_name, path) != std::string::npos)
      files.insert(line.substr(path));
  }
  return files;
}

TEST(TorchProcess, MultipliesMatrices) {
  const at::Tensor product = at::matmul(at::ones({64, 32}), at::full({32, 16}, 2.0));
  EXPECT_EQ(product.sum().item<float>(), 64 * 16 * 64);
}

TEST(TorchProcess, MapsOneOpenMpRuntime) {
  at::matmul(at::ones({64, 64}), at::ones({64, 64}));
  EXPECT_EQ(mapped_files("/libgomp").size(), 1u) << ::testing::PrintToString(mapped_files("/libgomp"));
  EXPECT_TRUE(mapped_files("/libiomp").empty()) << ::testing::PrintToString(mapped_files("/libiomp"));
}

TEST(TorchProcess, RunsParallelForOnSeveralThreads) {
  at::set_num_threads(2);
  std::array<int, 2> thread_of_half{-1, -1};

  at::parallel_for(0, 2, 1, [&](int64_t begin, int64_t end) {
    for (int64_t half = begin; half < end; ++half) thread_of_half.at(half) = at::get_thread_num();
  });

  EXPECT_EQ(thread_of_half, (std::array<int, 2>{0, 1}));
}

}  // namespace
