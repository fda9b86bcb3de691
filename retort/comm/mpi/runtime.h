#pragma once
// MPI in this process: started once, ended when the last group is gone.

#include <mpi.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "retort/comm/job.h"
#include "retort/comm/neighbour_watch.h"
#include "retort/comm/shared/arena.h"
#include "retort/comm/watchdog.h"
#include "retort/comm/worker.h"

namespace retort::comm {

class MpiRuntime final : public Job {
 public:
  /// Starts MPI.  Ranks of one machine find each other and map memory in common.  Collective.
  /// RETORT_RANKS_PER_NODE takes so many of them as a machine.  `last_words` may be null.  Throws
  /// EnvironmentError.
  MpiRuntime(int launched_ranks, LastWords last_words);
  ~MpiRuntime() override;

  int rank() const { return rank_; }
  int size() const { return size_; }
  /// Rank of the first rank of this machine.
  int node() const { return node_; }
  int local_rank() const { return local_rank_; }
  int local_size() const { return local_size_; }
  /// In common with the other ranks of this machine; null where the system does not allow it.
  const std::shared_ptr<Arena>& arena() const { return arena_; }
  /// The thread that calls MPI after the start.
  const std::shared_ptr<Worker>& worker() const { return worker_; }
  /// MPI's calls block: where a rank does not come in the patience of the worker, it says who, and ends all.
  Watchdog& watchdog() { return *watchdog_; }
  /// Whether all ranks see one arena, by which they hear of an end.
  bool is_one_machine() const { return arena_ && local_size_ == size_; }
  /// A rank of another machine whose record stops is missed.
  void record(std::shared_ptr<Flight> flight) override;
  void abort(const std::string& sentence) noexcept override;
  bool abort_is_heard() const override { return is_one_machine(); }
  bool claim_last_words() noexcept override { return !is_one_machine() || arena_->claim_last_words(); }
  /// Ends all ranks, because one did not come to this call for so long.
  void end_job(const std::string& call, double seconds) const;
  /// The same, because the record of one has not changed for so long.
  void end_silent(double seconds) const;
  /// Says the sentence, unless another rank has said why all end, and ends all ranks.
  void end_all(const std::string& sentence) const;

 private:
  void find_node();
  void share_arena();
  void divide_processors() const;
  void agree_on_patience() const;
  using ReadRecords = std::function<std::vector<FlightRecord>(const Flight& own)>;
  std::string said_by_another() const;
  void wait_for_last_words() const;
  std::string culprit_of(std::string otherwise, const ReadRecords& read) const;

  LastWords last_words_;
  int rank_ = 0, size_ = 1;
  MPI_Comm on_node_ = MPI_COMM_NULL;
  int node_ = 0, local_rank_ = 0, local_size_ = 1;
  std::shared_ptr<Arena> arena_;
  std::shared_ptr<Worker> worker_;
  std::unique_ptr<Watchdog> watchdog_;
  std::unique_ptr<NeighbourWatch> neighbour_;
};

/// Ends all ranks with the exit code of a PeerError, and this process in any case.
void abort_all_ranks() noexcept;

/// Throws PeerError unless an MPI call returned MPI_SUCCESS.
void require_mpi(int result, const char* call);

}  // namespace retort::comm
