// The interface of NCCL as it is written down here, beside the header and the library of its wheel.
#include <gtest/gtest.h>
#include <nccl.h>

#include <cstddef>
#include <cstdlib>
#include <string>
#include <type_traits>

#include "retort/comm/nccl/library.h"
#include "support/message_of.h"

namespace retort::comm::nccl {
namespace {

// Types that a function takes in the same way: pointers, numbers of a size, structures of a size.
template <class Ours, class Theirs>
constexpr bool kAlike = std::is_pointer_v<Ours> == std::is_pointer_v<Theirs>&& std::is_class_v<Ours> ==
                            std::is_class_v<Theirs> &&
                        sizeof(Ours) == sizeof(Theirs);

template <class... Ours, class... Theirs>
constexpr bool alike(Result (*)(Ours...), ncclResult_t (*)(Theirs...)) {
  if constexpr (sizeof...(Ours) != sizeof...(Theirs))
    return false;
  else
    return (kAlike<Ours, Theirs> && ...) && sizeof(Result) == sizeof(ncclResult_t);
}

static_assert(sizeof(UniqueId) == sizeof(ncclUniqueId));
static_assert(kSuccess == ncclSuccess && kInProgress == ncclInProgress && kInt8 == ncclInt8);
static_assert(offsetof(Config, size) == offsetof(ncclConfig_t, size) &&
              offsetof(Config, magic) == offsetof(ncclConfig_t, magic) &&
              offsetof(Config, version) == offsetof(ncclConfig_t, version) &&
              offsetof(Config, blocking) == offsetof(ncclConfig_t, blocking));

TEST(NcclHeader, HasTheFunctionsAsTheyAreCalled) {
  const Functions ours{};
#define EXPECT_ALIKE(name) EXPECT_TRUE(alike(ours.name, decltype(&::name){})) << #name
  EXPECT_ALIKE(ncclGetVersion);
  EXPECT_ALIKE(ncclGetUniqueId);
  EXPECT_ALIKE(ncclCommInitRankConfig);
  EXPECT_ALIKE(ncclCommGetAsyncError);
  EXPECT_ALIKE(ncclCommFinalize);
  EXPECT_ALIKE(ncclCommDestroy);
  EXPECT_ALIKE(ncclCommAbort);
  EXPECT_ALIKE(ncclGroupStart);
  EXPECT_ALIKE(ncclGroupEnd);
  EXPECT_ALIKE(ncclAllGather);
  EXPECT_ALIKE(ncclBroadcast);
  EXPECT_ALIKE(ncclSend);
  EXPECT_ALIKE(ncclRecv);
#undef EXPECT_ALIKE
  static_assert(std::is_same_v<decltype(ours.ncclGetErrorString(kSuccess)),
                               decltype(::ncclGetErrorString(ncclSuccess))>);
  const ncclConfig_t theirs = NCCL_CONFIG_INITIALIZER;
  EXPECT_EQ(Config{}.magic, theirs.magic);
}

// The library itself, as far as it goes on a machine without an accelerator.
TEST(NcclHeader, IsThatOfTheLibrary) {
  const char* before = std::getenv("RETORT_NCCL");
  const std::string kept = before ? before : "";
  ::setenv("RETORT_NCCL", RETORT_WHEEL_NCCL, 1);
  const auto loaded = library();
  ::setenv("RETORT_NCCL", kept.c_str(), 1);
  EXPECT_EQ(loaded->version, NCCL_VERSION_CODE);
  UniqueId first, second;
  EXPECT_EQ(loaded->call.ncclGetUniqueId(&first), kSuccess);
  EXPECT_EQ(loaded->call.ncclGetUniqueId(&second), kSuccess);
  EXPECT_NE(std::string(first.internal, sizeof first.internal),
            std::string(second.internal, sizeof second.internal));
  EXPECT_SAYS(std::string(loaded->call.ncclGetErrorString(kInProgress)), "in progress");
}

}  // namespace
}  // namespace retort::comm::nccl
