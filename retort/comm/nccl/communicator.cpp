#include "retort/comm/nccl/communicator.h"

#include <chrono>
#include <exception>
#include <thread>

#include "retort/base/error.h"
#include "retort/base/machine.h"

namespace retort::comm::nccl {
namespace {

// A call inside a group is on its way when the group ends, and not before.
Result queued(Result result) {
  return result == kInProgress ? kSuccess : result;
}

}  // namespace

Communicator::Communicator(std::shared_ptr<const Library> library, const UniqueId& id, int rank, int size,
                           std::function<void(Waited& waited)> look)
    : library_(std::move(library)), look_(std::move(look)), size_(size) {
  Config config;
  try {
    require([&] { return library_->call.ncclCommInitRankConfig(&handle_, size, id, rank, &config); },
            "ncclCommInitRankConfig");
  } catch (...) {
    abort();
    throw;
  }
}

// To finalise is to wait for the other ranks.  They wait for this one, or to hear of its error.
Communicator::~Communicator() {
  if (std::uncaught_exceptions() > 0 || aborted_) {
    abort();
    return;
  }
  try {
    require([&] { return library_->call.ncclCommFinalize(handle_); }, "ncclCommFinalize");
    library_->call.ncclCommDestroy(handle_);
  } catch (const std::exception&) {  // another rank failed
    abort();
  }
}

// A call that has begun may still be on its way.
template <class Call>
void Communicator::require(const Call& call, const char* what) {
  const auto now = [&](const auto& asked) {
    const std::scoped_lock lock(mutex_);
    base::require<base::PeerError>(!aborted_, what, ": was given up because another rank failed.");
    return asked();
  };
  Waited waited;
  auto result = now(call);
  while (result == kInProgress) {
    look_(waited);
    std::this_thread::sleep_for(std::chrono::microseconds(50));
    now([&] { return library_->call.ncclCommGetAsyncError(handle_, &result); });
  }
  base::require<base::PeerError>(result == kSuccess, what, ": NCCL says: ",
                                 result == kSuccess ? "" : library_->call.ncclGetErrorString(result),
                                 "; start the same command again to go on from what is kept.");
}

void Communicator::all_gather(const void* own, void* all, std::int64_t part_bytes, void* stream) {
  const auto count = static_cast<std::size_t>(part_bytes);
  require([&] { return library_->call.ncclAllGather(own, all, count, kInt8, handle_, stream); },
          "ncclAllGather");
}

void Communicator::broadcast(void* values, std::int64_t bytes, int root, void* stream) {
  const auto count = static_cast<std::size_t>(bytes);
  require([&] { return library_->call.ncclBroadcast(values, values, count, kInt8, root, handle_, stream); },
          "ncclBroadcast");
}

void Communicator::all_to_all(const void* from, std::int64_t stride_bytes, void* to, std::int64_t bytes,
                              void* stream) {
  const auto& call = library_->call;
  const auto count = static_cast<std::size_t>(bytes);
  require([&] { return call.ncclGroupStart(); }, "ncclGroupStart");
  for (int rank = 0; rank < size_; ++rank) {
    const auto* sent = static_cast<const std::byte*>(from) + rank * stride_bytes;
    auto* received = static_cast<std::byte*>(to) + rank * bytes;
    require([&] { return queued(call.ncclSend(sent, count, kInt8, rank, handle_, stream)); }, "ncclSend");
    require([&] { return queued(call.ncclRecv(received, count, kInt8, rank, handle_, stream)); }, "ncclRecv");
  }
  require([&] { return call.ncclGroupEnd(); }, "ncclGroupEnd");
}

std::string Communicator::error() const {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock || aborted_) return {};
  Result result = kSuccess;
  library_->call.ncclCommGetAsyncError(handle_, &result);
  return result == kSuccess || result == kInProgress ? "" : library_->call.ncclGetErrorString(result);
}

// A thread that stays inside a call is freed by the abort alone.
void Communicator::abort() noexcept {
  std::unique_lock lock(mutex_, std::defer_lock);
  for (int tries = 0; tries < 100 && !lock.try_lock(); ++tries)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  if (handle_ && !aborted_.exchange(true)) library_->call.ncclCommAbort(handle_);
  aborted_ = true;
}

}  // namespace retort::comm::nccl
