#pragma once
// The ranks of one group as NCCL knows them.  Calls are given to a stream and return; none blocks for good.

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "retort/comm/nccl/library.h"
#include "retort/comm/waited.h"

namespace retort::comm::nccl {

class Communicator {
 public:
  /// Collective.  While a call waits for other ranks, `look` is called with the time since it began: it
  /// throws where one will not come.
  Communicator(std::shared_ptr<const Library> library, const UniqueId& id, int rank, int size,
               std::function<void(Waited& waited)> look);
  /// Collective, unless it was aborted or an error is on its way, which aborts it.
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  /// Buffers are memory of the accelerator; `part_bytes` are of one rank.
  void all_gather(const void* own, void* all, std::int64_t part_bytes, void* stream);
  void broadcast(void* values, std::int64_t bytes, int root, void* stream);
  /// Sends `bytes` at rank times `stride_bytes` of `from` to each rank, and puts what comes behind each other
  /// in the order of ranks.
  void all_to_all(const void* from, std::int64_t stride_bytes, void* to, std::int64_t bytes, void* stream);

  /// What went wrong in a call that was given to a stream; empty: nothing, or a call is being given.  From
  /// any thread.
  std::string error() const;
  /// What is under way ends without result, and no later call begins.  From any thread.
  void abort() noexcept;

 private:
  /// Makes a call, unless this was aborted, and returns when the library took it.
  template <class Call>
  void require(const Call& call, const char* what);

  std::shared_ptr<const Library> library_;
  std::function<void(Waited& waited)> look_;
  int size_;
  mutable std::mutex mutex_;  // an abort frees the handle, perhaps while another thread asks how it goes
  CommHandle handle_ = nullptr;
  std::atomic<bool> aborted_ = false;
};

}  // namespace retort::comm::nccl
