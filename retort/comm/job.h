#pragma once
// What all groups of a process share beside their collectives: where its calls are noted, how long it waits
// for others, where buffers of its accelerator lie, and how all ranks end.  Nothing here is collective.

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace retort::comm::nccl {
class Exchange;
struct Library;
}  // namespace retort::comm::nccl
namespace retort::comm {

class Accelerator;
class Flight;

class Job {
 public:
  Job();
  virtual ~Job();
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  /// From now on the calls of this process, of all its groups, are noted there.
  virtual void record(std::shared_ptr<Flight> flight);
  const std::shared_ptr<Flight>& flight() const { return flight_; }
  /// What this rank is at, for those who look when it is gone.
  void at(std::int64_t step, std::string_view phase);
  /// Why this rank ends: by itself, or (`by_another`) because another did.
  void note_failure(std::string_view sentence, bool by_another) noexcept;
  /// It does not end after all.
  void note_recovery() noexcept;
  /// This rank and where it is, as its record says: "rank 2 on node7 (process 12) in step 5, forward; its
  /// last call was all_reduce of 2 f64, number 8 of 'world'"; "rank 2" where nothing is noted.
  std::string place(int rank) const;

  /// From now on a rank that does not come within so many seconds ends all; 0: nobody is missed.  What
  /// Group::agree() waits for may take longer.
  void set_patience(double seconds) { patience_seconds_ = seconds; }
  double patience_seconds() const { return patience_seconds_; }

  /// Where buffers of an accelerator lie.  Those of several ranks move by `library`, in the order of streams:
  /// a handle's wait() then holds up the calling thread's computation and not the thread.  Without a library
  /// they are copied through host memory.  Before any call that needs it.
  void set_accelerator(std::shared_ptr<Accelerator> accelerator,
                       std::shared_ptr<const nccl::Library> library);
  Accelerator* accelerator() const { return accelerator_.get(); }
  /// Null without a library.
  nccl::Exchange* exchange() const { return exchange_.get(); }

  /// Ends the work of all ranks: their present and later calls throw PeerError with this sentence.  Where
  /// abort_is_heard() is false it ends all processes at once instead, with the exit code of a PeerError, so
  /// the sentence must have been said before.
  virtual void abort(const std::string& sentence) noexcept = 0;
  virtual bool abort_is_heard() const = 0;
  /// Whether it is for this rank to say why all end, because no other has: true once among all ranks, where
  /// they have memory in common.
  virtual bool claim_last_words() noexcept = 0;

 private:
  std::shared_ptr<Flight> flight_;
  std::atomic<double> patience_seconds_ = 0;
  std::shared_ptr<Accelerator> accelerator_;
  std::shared_ptr<nccl::Exchange> exchange_;
};

/// The job of a process that has no others.
std::shared_ptr<Job> lone_job();

}  // namespace retort::comm
