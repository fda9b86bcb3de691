#pragma once
// A group whose calls are carried out by a thread of their own, noted in its log and in the flight of its
// rank.

#include <memory>
#include <string>

#include "retort/comm/call.h"
#include "retort/comm/group.h"
#include "retort/comm/worker.h"

namespace retort::comm {

class WorkerGroup : public Group {
 public:
  const std::string& level() const override { return level_; }
  void record(std::shared_ptr<Flight> flight) override { worker_->record(std::move(flight)); }
  void at(std::int64_t step, std::string_view phase) override;
  void note_failure(std::string_view sentence, bool by_another) noexcept override;
  void set_patience(double seconds) override { worker_->set_patience(seconds); }
  void set_device_memory(const DeviceMemory& memory) override { worker_->set_device_memory(memory); }

 protected:
  WorkerGroup(std::shared_ptr<Worker> worker, std::string level)
      : worker_(std::move(worker)), level_(std::move(level)) {}

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
  /// Bytes that the call at hand brought from other ranks.
  void note_moved(std::int64_t bytes) { moved_bytes_ += bytes; }

  const std::shared_ptr<Worker>& worker() const { return worker_; }

 private:
  void carry_out(const Collective& call, const CallId& id);

  std::shared_ptr<Worker> worker_;
  std::string level_;
  std::int64_t number_ = 0;       // of the last call
  std::int64_t moved_bytes_ = 0;  // of the worker's thread
};

}  // namespace retort::comm
