// Takes the place of retort/ops/path.cpp and retort/kernels/cuda/launch.cpp in a test program: the kernels
// for NVIDIA's accelerators are compiled for the CPU, which runs the threads of a block one after the other,
// each up to the next barrier.
#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>
#include <setjmp.h>
#include <ucontext.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "retort/kernels/cuda/arguments.h"
#include "retort/kernels/cuda/kernels.h"
#include "retort/ops/path.h"
#include "support/kernel_names.h"

namespace {

// ---- A block of threads

struct Dimension {
  unsigned x = 0;
};
Dimension threadIdx, blockIdx, blockDim, gridDim;

// Switches by jumps: to save a context costs a call to the system, and there are millions of switches.
class Block {
 public:
  static Block& block() {
    static Block one;
    return one;
  }

  // Calls `body` once for each thread.  A barrier that only some of them reach is an error.
  void run(int threads, bool backwards, const std::function<void()>& body) {
    body_ = &body;
    const auto count = static_cast<std::size_t>(threads);
    while (threads_.size() < count) make_thread();
    for (std::size_t ended = 0; ended < count;) {
      ended = 0;
      for (std::size_t i = 0; i < count; ++i) ended += resume(backwards ? count - 1 - i : i) ? 1 : 0;
      if (ended > 0) {
        ASSERT_EQ(ended, count) << "some threads of a block wait where others have ended";
      }
    }
  }
  void wait() { leave(false); }

 private:
  static constexpr std::size_t kStackBytes = std::size_t{64} << 10;
  struct Thread {
    std::unique_ptr<char[]> stack = std::make_unique<char[]>(kStackBytes);
    jmp_buf place{};
    bool ended = true;
  };

  // Up to its first piece of work.
  void make_thread() {
    threads_.push_back(std::make_unique<Thread>());
    threadIdx.x = static_cast<unsigned>(threads_.size() - 1);
    ucontext_t here{}, there{};
    ::getcontext(&there);
    there.uc_stack.ss_sp = threads_.back()->stack.get();
    there.uc_stack.ss_size = kStackBytes;
    there.uc_link = nullptr;
    ::makecontext(
        &there, [] { block().thread_main(); }, 0);
    if (_setjmp(scheduler_) == 0) ::swapcontext(&here, &there);
  }
  [[noreturn]] void thread_main() {
    for (;;) {
      leave(true);
      (*body_)();
    }
  }
  void leave(bool ended) {
    auto& thread = *threads_[threadIdx.x];
    thread.ended = ended;
    if (_setjmp(thread.place) == 0) _longjmp(scheduler_, 1);
  }
  bool resume(std::size_t thread) {
    threadIdx.x = static_cast<unsigned>(thread);
    if (_setjmp(scheduler_) == 0) _longjmp(threads_[thread]->place, 1);
    return threads_[threadIdx.x]->ended;
  }

  jmp_buf scheduler_{};
  std::vector<std::unique_ptr<Thread>> threads_;
  const std::function<void()>* body_ = nullptr;
};

void __syncthreads() {  // NOLINT: the name is CUDA's
  Block::block().wait();
}

template <typename T>
T shuffle_xor(T x, int lanes) {
  static T of_threads[1024];
  of_threads[threadIdx.x] = x;
  __syncthreads();
  const T other = of_threads[threadIdx.x ^ static_cast<unsigned>(lanes)];
  __syncthreads();
  return other;
}

float __uint_as_float(unsigned bits) {  // NOLINT
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}
unsigned __float_as_uint(float x) {  // NOLINT
  unsigned bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}

// ---- The kernels, for both types

// A processor takes from everywhere what an accelerator takes from aligned places alone.
void check_aligned(const void* pointer, std::size_t bytes) {
  if (reinterpret_cast<std::uintptr_t>(pointer) % bytes != 0)
    ADD_FAILURE() << "a kernel takes " << bytes << " bytes from a place that is not aligned";
}

#define CHECK_ALIGNED(pointer, bytes) check_aligned(pointer, bytes)
#define __device__
#define __shared__ static
#define __launch_bounds__(threads)
#define __global__ [[maybe_unused]] static

namespace of_float {
#define SCALAR_IS_BF16 0
#include "retort/kernels/cuda/kernels.cu"
#undef SCALAR_IS_BF16
}  // namespace of_float
namespace of_bf16 {
#define SCALAR_IS_BF16 1
#include "retort/kernels/cuda/kernels.cu"
}  // namespace of_bf16

// ---- Their names

using Kernel = std::function<void(void** arguments)>;

template <typename... Arguments>
Kernel kernel(void (*function)(Arguments...)) {
  return [function](void** arguments) {
    [&]<std::size_t... kPlace>(std::index_sequence<kPlace...>) {
      function(*static_cast<Arguments*>(arguments[kPlace])...);
    }
    (std::index_sequence_for<Arguments...>());
  };
}

#define TEMPLATE(name, ...) \
  { cuda::instance(#name, __VA_ARGS__), kernel(name<__VA_ARGS__>) }
#define OF_WIDTH(width)                                                                                     \
  TEMPLATE(rms_norm, width), TEMPLATE(rms_norm_backward, width, 1), TEMPLATE(rms_norm_backward, width, 2),  \
      TEMPLATE(rms_norm_backward, width, 4),                                                                \
      {cuda::instance("glu", width, "Silu"), kernel(glu<width, Silu>)},                                     \
      {cuda::instance("glu", width, "Gelu"), kernel(glu<width, Gelu>)},                                     \
      {cuda::instance("glu_backward", width, "Silu"), kernel(glu_backward<width, Silu>)},                   \
      {cuda::instance("glu_backward", width, "Gelu"), kernel(glu_backward<width, Gelu>)},                   \
      TEMPLATE(logit_losses, width, 1), TEMPLATE(logit_losses, width, 2), TEMPLATE(logit_losses, width, 3), \
      TEMPLATE(square_sums, width), TEMPLATE(relative_errors, width)
#define ALL_KERNELS(width)                                                                              \
  {                                                                                                     \
    OF_WIDTH(1), OF_WIDTH(width), TEMPLATE(add_rows, 1), TEMPLATE(apply_rotary, 1), TEMPLATE(adamw, 1), \
        TEMPLATE(sum_of_squares, 1)                                                                     \
  }

namespace cuda = retort::kernels::cuda;
using Kernels = std::map<std::string, Kernel>;

namespace of_float {
const Kernels kAll = ALL_KERNELS(4);
}
namespace of_bf16 {
const Kernels kAll = ALL_KERNELS(8);
}

int launched = 0;

}  // namespace

namespace retort {

ops::Path ops::path_of(c10::Device) {
  return Path::cuda;
}

bool kernels::cuda::has_kernels(c10::Device) {
  return true;
}
std::string kernels::cuda::describe_kernels(c10::Device) {
  return "own kernels, on the CPU";
}

void kernels::cuda::launch(const std::string& name, at::ScalarType type, Grid grid, const at::Tensor&,
                           void** arguments) {
  const auto& kernel = (type == at::kBFloat16 ? of_bf16::kAll : of_float::kAll).at(name);
  ASSERT_EQ(grid.threads % 32, 0) << name;
  blockDim.x = static_cast<unsigned>(grid.threads);
  gridDim.x = static_cast<unsigned>(grid.blocks);
  for (blockIdx.x = 0; blockIdx.x < gridDim.x; ++blockIdx.x)
    Block::block().run(grid.threads, (++launched) % 2 == 0, [&] { kernel(arguments); });
}

namespace {

TEST(KernelsOnTheCpu, AreTaken) {
  EXPECT_EQ(ops::path_of(c10::Device(c10::kCPU)), ops::Path::cuda);
}

TEST(KernelsOnTheCpu, AreAllThatAreNamed) {
  for (const auto& [all, width] : {std::pair{&of_float::kAll, 4}, std::pair{&of_bf16::kAll, 8}}) {
    EXPECT_EQ(all->size(), test::kernel_names(width).size());
    for (const auto& name : test::kernel_names(width)) EXPECT_EQ(all->count(name), 1) << name;
  }
}

}  // namespace
}  // namespace retort
