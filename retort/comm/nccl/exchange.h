#pragma once
// The collectives of a process on its accelerator: given to a stream in the order of their calls, and watched
// until they have moved, so that no processor waits for them.
//
// NCCL moves bytes and adds nothing.  Sums are made here, in the order of ranks, so that they have the bits
// of the other backends.

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "retort/comm/accelerator.h"
#include "retort/comm/group.h"
#include "retort/comm/nccl/communicator.h"
#include "retort/comm/waited.h"

namespace retort::comm::nccl {

/// Who looks after a call that moves.
struct Watched {
  /// Called while it moves, with the time since it began: throws where another rank will not do its part.
  std::function<void(Waited& waited)> look;
  /// It moved, in so many seconds.
  std::function<void(double seconds)> ended;
  /// What it is, for an error.
  std::string name;
  /// All ranks have to end: why.
  std::function<void(const std::string& sentence)> end_all;
};

class Exchange {
 public:
  Exchange(std::shared_ptr<Accelerator> accelerator, std::shared_ptr<const Library> library);
  /// Returns when nothing moves any more.
  ~Exchange();
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  Accelerator& accelerator() const { return *accelerator_; }
  const std::shared_ptr<const Library>& library() const { return library_; }

  /// Gives a call to the exchange, after `ready`, as one of `size` ranks.  Returns the place after it.  All
  /// ranks are at this call.
  std::shared_ptr<Mark> begin(const Collective& call, const Mark& ready,
                              const std::shared_ptr<Communicator>& communicator, int size, Watched watched);
  /// Returns when all that was begun has moved, or will not any more.
  void drain();
  /// Why nothing moves any more; empty: nothing failed.
  std::string failure() const;
  /// Throws that as a PeerError.
  void require_sound() const;

 private:
  struct Moving {
    std::shared_ptr<Mark> begin, end;          // the end is not there while the call is being given
    std::weak_ptr<Communicator> communicator;  // its group's, which closes it when nothing moves any more
    Watched watched;
    Waited waited = {};        // since the computation had come to it
    bool has_begun = false;    // it had
    double failing_since = 0;  // when NCCL began to say that it failed; 0: not yet
  };
  void know(const std::shared_ptr<Communicator>& communicator);
  void give(const Collective& call, Communicator& communicator, int size);
  void add_received(const Collective& call, Communicator& communicator, int size);
  void watch(const std::stop_token& stop);
  /// Whether the call has ended; on failure nothing moves any more.
  bool has_ended(Moving& moving);
  void look_after(Moving& moving) const;
  void fail(const std::string& sentence);

  std::shared_ptr<Accelerator> accelerator_;
  std::shared_ptr<const Library> library_;
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<std::shared_ptr<Moving>> moving_;  // in the order of the stream
  std::vector<std::weak_ptr<Communicator>> communicators_;
  std::string failed_;  // why; empty: nothing
  std::jthread thread_;
};

}  // namespace retort::comm::nccl
