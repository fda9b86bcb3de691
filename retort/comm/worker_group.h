#pragma once
// A group whose calls are carried out by a thread of their own, noted in its log and in the flight of its
// rank.

#include <memory>
#include <string>

#include "retort/comm/call.h"
#include "retort/comm/group.h"
#include "retort/comm/nccl/communicator.h"
#include "retort/comm/waited.h"
#include "retort/comm/worker.h"

namespace retort::comm {

class WorkerGroup : public Group {
 public:
  const std::string& level() const override { return level_; }
  Job& job() const override { return *job_; }

 protected:
  WorkerGroup(std::shared_ptr<Job> job, std::shared_ptr<Worker> worker, std::string level)
      : job_(std::move(job)), worker_(std::move(worker)), level_(std::move(level)) {}

  Handle start(const Collective& call) override;
  // The parts of a call, on the worker's thread.
  /// Returns when all ranks are at this call; throws PeerError when they are at different ones.
  virtual void enter(const Collective& call, const CallId& id) = 0;
  virtual void gather(const Collective& call) = 0;
  virtual void reduce(const Collective& call) = 0;
  virtual void sum_everywhere(const Collective& call) = 0;
  virtual void spread(const Collective& call) = 0;
  /// Returns when the buffers of all may be used again.
  virtual void leave() {}
  /// Of a call that has moved on accelerators for so long, by any thread: throws PeerError, or ends all,
  /// where a rank is gone or it takes longer than `times` the patience.
  virtual void look(const CallId& call, Waited& waited, double times) = 0;
  /// Ends all ranks with this sentence: they throw it, or are no more.
  virtual void end_all(const std::string& sentence) = 0;
  /// Returns when nothing of this group moves on an accelerator any more.  For the destructors of backends.
  void close_exchange();
  /// Bytes that the call at hand brought from other ranks.
  void note_moved(std::int64_t bytes) { moved_bytes_ += bytes; }

  const std::shared_ptr<Job>& shared_job() const { return job_; }
  const std::shared_ptr<Worker>& worker() const { return worker_; }

 private:
  /// What is noted of a call: told as it goes on.
  struct Noted {
    CallId id;
    Op op;
    std::int64_t bytes, place;
    std::shared_ptr<Flight> flight;
  };
  Handle start_here(const Collective& call, const Noted& noted);
  Handle start_on_accelerator(const Collective& call, const Noted& noted);
  void carry_out(const Collective& call, const CallId& id);
  std::shared_ptr<Mark> give_to_accelerator(const Collective& call, const Noted& noted, const Mark& ready);
  const std::shared_ptr<nccl::Communicator>& communicator(const CallId& id);

  std::shared_ptr<Job> job_;  // outlives the worker
  std::shared_ptr<Worker> worker_;
  std::string level_;
  std::int64_t number_ = 0;       // of the last call
  std::int64_t moved_bytes_ = 0;  // of the worker's thread
  std::shared_ptr<nccl::Communicator> communicator_;
};

}  // namespace retort::comm
