// A libnccl.so.2 for the test device: NCCL's interface, over memory that the ranks of a machine share.  As in
// NCCL, calls do not block, those of a group move together, and a rank that is alone hangs until it aborts:
// in a call, when it joins and when it finalises.

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "device/test_device.h"
#include "retort/comm/nccl/abi.h"

namespace device = retort::test::device;
using namespace retort::comm::nccl;

namespace {

constexpr Result kInvalidArgument = 4, kInvalidUsage = 5, kRemoteError = 6;
constexpr std::int64_t kChunk = std::int64_t{1} << 16;

// From one rank to another; holds a chunk when more were sent than received.
struct Channel {
  std::atomic<std::int64_t> sent, received;
  std::byte data[kChunk];
};

// Behind it lie the channels of all pairs of ranks.
struct Segment {
  alignas(64) std::atomic<int> attached, finalized;
};

struct Comm {
  ~Comm() { ::munmap(segment, static_cast<std::size_t>(bytes)); }
  Channel& channel(int from, int to) const {
    return reinterpret_cast<Channel*>(segment + 1)[from * ranks + to];
  }

  int rank = 0, ranks = 0;
  std::int64_t bytes = 0;
  Segment* segment = nullptr;
  std::atomic<bool> aborted = false, busy = false, finalizes = false;
  std::atomic<Result> error = kSuccess;
};

struct Move {
  bool sends;
  std::byte* data;
  std::int64_t bytes;
  int peer;
  std::int64_t done = 0;
};

// What a stream does at once.
struct Batch {
  std::shared_ptr<Comm> comm;
  device::Stream* stream = nullptr;
  std::vector<Move> moves;
  std::vector<device::Use> uses;
};

// The next failure that a test wants.
std::atomic<int> failing_rank = -1, failing_kind = 0, calls_before = 0;

// RETORT_TEST_NCCL_FAIL="RANK KIND CALLS" is test_nccl_fail() for a program that nobody can call.
const bool kFailureIsWanted = [] {
  const char* wanted = std::getenv("RETORT_TEST_NCCL_FAIL");
  int numbers[3] = {-1, 0, 0};
  if (!wanted || std::sscanf(wanted, "%d %d %d", &numbers[0], &numbers[1], &numbers[2]) != 3) return false;
  failing_rank = numbers[0];
  failing_kind = numbers[1];
  calls_before = numbers[2];
  return true;
}();

// Calls stand still while a test holds them, but not for ever: who waits for one is to fail, and not to hang.
constexpr auto kLongestHold = std::chrono::seconds(5);
std::atomic<bool> held = false;
std::atomic<int> calls_held = 0;

void stand_still(const Comm& comm) {
  const auto end = std::chrono::steady_clock::now() + kLongestHold;
  ++calls_held;
  while (held && !comm.aborted && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  --calls_held;
}

// Whether anything moved.
bool advance(const Comm& comm, Move& move) {
  auto& channel = move.sends ? comm.channel(comm.rank, move.peer) : comm.channel(move.peer, comm.rank);
  const bool full = channel.sent != channel.received;
  if (move.done == move.bytes || full == move.sends) return false;
  const auto bytes = std::min(kChunk, move.bytes - move.done);
  auto* place = device::reached(move.data) + move.done;
  move.sends ? std::memcpy(channel.data, place, static_cast<std::size_t>(bytes))
             : std::memcpy(place, channel.data, static_cast<std::size_t>(bytes));
  move.done += bytes;
  ++(move.sends ? channel.sent : channel.received);
  return true;
}

bool fails_now(const Comm& comm) {
  return comm.rank == failing_rank && calls_before.fetch_sub(1) == 0;
}

void carry_out(Batch& batch) {
  auto& comm = *batch.comm;
  stand_still(comm);
  if (fails_now(comm)) {
    if (failing_kind == 1) comm.error = kRemoteError;
    while (!comm.aborted) std::this_thread::yield();
    return;
  }
  const auto unfinished = [](const Move& move) { return move.done < move.bytes; };
  while (!comm.aborted && std::ranges::any_of(batch.moves, unfinished)) {
    bool moved = false;
    for (auto& move : batch.moves) moved = advance(comm, move) || moved;
    if (!moved) std::this_thread::yield();
  }
}

// Of the calling thread: what ncclGroupEnd gives to the stream.
thread_local int depth = 0;
thread_local std::vector<Batch> batches;

Batch& batch_of(const std::shared_ptr<Comm>& comm, void* stream) {
  if (batches.empty() || batches.back().comm != comm || batches.back().stream != stream)
    batches.push_back({comm, static_cast<device::Stream*>(stream), {}, {}});
  return batches.back();
}

void add(Batch& batch, bool sends, const void* data, std::size_t bytes, int peer) {
  batch.moves.push_back(
      {sends, static_cast<std::byte*>(const_cast<void*>(data)), static_cast<std::int64_t>(bytes), peer});
}

Result give_all() {
  for (auto& batch : std::exchange(batches, {})) {
    batch.comm->busy = true;
    const auto given = std::make_shared<Batch>(std::move(batch));
    device::give(given->stream, given->uses, [given] { carry_out(*given); });
  }
  return kInProgress;
}

}  // namespace

namespace retort::comm::nccl {
struct OpaqueComm {
  std::shared_ptr<Comm> comm;
};
}  // namespace retort::comm::nccl

extern "C" {

/// The call after `calls` more on `rank` fails: kind 1 tells an error, 2 hangs.
void test_nccl_fail(int rank, int kind, int calls) {
  failing_rank = rank;
  failing_kind = kind;
  calls_before = calls;
}

/// From now on calls stand still, at most kLongestHold, or go on.
void test_nccl_hold(int wanted) {
  held = wanted != 0;
}
/// Calls that stand still now, of all ranks of this process.
int test_nccl_held() {
  return calls_held;
}

Result ncclGetVersion(int* version) {
  *version = 22703;
  return kSuccess;
}

Result ncclGetUniqueId(UniqueId* id) {
  std::random_device random;
  std::snprintf(id->internal, sizeof id->internal, "/test_nccl_%08x%08x", random(), random());
  return kSuccess;
}

Result ncclCommInitRankConfig(CommHandle* handle, int ranks, UniqueId id, int rank, Config* config) {
  if (!config || config->magic != 0xcafebeef || config->blocking != 0 || rank < 0 || rank >= ranks)
    return kInvalidArgument;
  const auto comm = std::make_shared<Comm>();
  comm->rank = rank;
  comm->ranks = ranks;
  comm->bytes =
      static_cast<std::int64_t>(sizeof(Segment) + sizeof(Channel) * static_cast<std::size_t>(ranks * ranks));
  const int file = ::shm_open(id.internal, O_RDWR | O_CREAT, 0600);
  if (file < 0 || ::ftruncate(file, comm->bytes) != 0) return kInvalidUsage;
  void* mapped =
      ::mmap(nullptr, static_cast<std::size_t>(comm->bytes), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ::close(file);
  comm->segment = static_cast<Segment*>(mapped);
  if (++comm->segment->attached == ranks) ::shm_unlink(id.internal);
  *handle = new OpaqueComm{comm};
  return kInProgress;
}

Result ncclCommGetAsyncError(CommHandle handle, Result* error) {
  auto& comm = *handle->comm;
  const auto& [attached, finalized] = *comm.segment;
  const bool waits =
      attached < comm.ranks || (comm.finalizes && finalized < comm.ranks) || comm.busy.exchange(false);
  *error = comm.error != kSuccess ? comm.error.load() : waits ? kInProgress : kSuccess;
  return kSuccess;
}

Result ncclCommFinalize(CommHandle handle) {
  handle->comm->finalizes = true;
  ++handle->comm->segment->finalized;
  return kInProgress;
}

Result ncclCommDestroy(CommHandle handle) {
  delete handle;
  return kSuccess;
}

Result ncclCommAbort(CommHandle handle) {
  handle->comm->aborted = true;
  delete handle;
  return kSuccess;
}

const char* ncclGetErrorString(Result result) {
  return result == kRemoteError ? "remote process exited or there was a network error" : "another error";
}

Result ncclGroupStart() {
  ++depth;
  return kSuccess;
}

Result ncclGroupEnd() {
  return --depth == 0 ? give_all() : kSuccess;
}

Result ncclSend(const void* from, std::size_t count, DataType type, int peer, CommHandle handle,
                void* stream) {
  if (type != kInt8) return kInvalidArgument;
  auto& batch = batch_of(handle->comm, stream);
  add(batch, true, from, count, peer);
  batch.uses.push_back({from, static_cast<std::int64_t>(count), false});
  return depth > 0 ? kSuccess : give_all();
}

Result ncclRecv(void* to, std::size_t count, DataType type, int peer, CommHandle handle, void* stream) {
  if (type != kInt8) return kInvalidArgument;
  auto& batch = batch_of(handle->comm, stream);
  add(batch, false, to, count, peer);
  batch.uses.push_back({to, static_cast<std::int64_t>(count), true});
  return depth > 0 ? kSuccess : give_all();
}

Result ncclAllGather(const void* from, void* to, std::size_t count, DataType type, CommHandle handle,
                     void* stream) {
  if (type != kInt8) return kInvalidArgument;
  auto& batch = batch_of(handle->comm, stream);
  const int ranks = handle->comm->ranks;
  for (int peer = 0; peer < ranks; ++peer) {
    add(batch, true, from, count, peer);
    add(batch, false, static_cast<std::byte*>(to) + static_cast<std::size_t>(peer) * count, count, peer);
  }
  const auto bytes = static_cast<std::int64_t>(count);
  batch.uses.push_back({from, bytes, false});
  batch.uses.push_back({to, bytes * ranks, true});
  return depth > 0 ? kSuccess : give_all();
}

Result ncclBroadcast(const void* from, void* to, std::size_t count, DataType type, int root,
                     CommHandle handle, void* stream) {
  if (type != kInt8) return kInvalidArgument;
  const auto& comm = handle->comm;
  auto& batch = batch_of(comm, stream);
  const bool sends = comm->rank == root;
  if (sends)
    for (int peer = 0; peer < comm->ranks; ++peer) add(batch, true, from, count, peer);
  add(batch, false, to, count, root);
  if (sends) batch.uses.push_back({from, static_cast<std::int64_t>(count), false});
  batch.uses.push_back({to, static_cast<std::int64_t>(count), true});
  return depth > 0 ? kSuccess : give_all();
}

}  // extern "C"
