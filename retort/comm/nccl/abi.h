#pragma once
// The part of NCCL's interface that is used, which RCCL has too.  It is written down anew because the library
// is found when a program runs: nobody needs its header to build.  A test compares it with that of a wheel.

#include <cstddef>

namespace retort::comm::nccl {

struct UniqueId {
  char internal[128] = {};
};

struct OpaqueComm;  // ncclComm
using CommHandle = OpaqueComm*;

using Result = int;
inline constexpr Result kSuccess = 0;
inline constexpr Result kInProgress = 7;

using DataType = int;
inline constexpr DataType kInt8 = 0;

/// As NCCL 2.14 had it; later releases take their defaults for what they added.
struct Config {
  std::size_t size = sizeof(Config);
  unsigned magic = 0xcafebeef;
  unsigned version = 21400;
  int blocking = 0;  ///< calls return at once, and error_of() says how they went
};

/// Functions of the library, each by the name that it has there.  Counts are of `type`; `stream` is a
/// cudaStream_t or hipStream_t.
struct Functions {
  Result (*ncclGetVersion)(int* version);
  Result (*ncclGetUniqueId)(UniqueId* id);
  Result (*ncclCommInitRankConfig)(CommHandle* comm, int ranks, UniqueId id, int rank, Config* config);
  Result (*ncclCommGetAsyncError)(CommHandle comm, Result* error);
  Result (*ncclCommFinalize)(CommHandle comm);
  Result (*ncclCommDestroy)(CommHandle comm);
  Result (*ncclCommAbort)(CommHandle comm);
  const char* (*ncclGetErrorString)(Result result);
  Result (*ncclGroupStart)();
  Result (*ncclGroupEnd)();
  Result (*ncclAllGather)(const void* from, void* to, std::size_t count, DataType type, CommHandle comm,
                          void* stream);
  Result (*ncclBroadcast)(const void* from, void* to, std::size_t count, DataType type, int root,
                          CommHandle comm, void* stream);
  Result (*ncclSend)(const void* from, std::size_t count, DataType type, int peer, CommHandle comm,
                     void* stream);
  Result (*ncclRecv)(void* to, std::size_t count, DataType type, int peer, CommHandle comm, void* stream);
};

}  // namespace retort::comm::nccl
