#include "retort/comm/mpi/mpi_group.h"

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "retort/base/error.h"
#include "retort/base/hash.h"
#include "retort/comm/mpi/bytes_type.h"
#include "retort/comm/shared/shared_group.h"
#include "retort/comm/sum.h"
#include "retort/comm/worker_group.h"

namespace retort::comm {
namespace {

constexpr std::int64_t kPiece = std::int64_t{4} << 20;  // bytes of each rank that are summed at once

// Largest block of bytes that MPI counts in one number; tests make it small.
std::int64_t largest_block() {
  const char* text = std::getenv("RETORT_MPI_LARGEST_BLOCK");
  return text ? std::max(1LL, std::atoll(text)) : std::int64_t{1} << 30;
}

class MpiGroup final : public WorkerGroup {
 public:
  MpiGroup(std::shared_ptr<MpiRuntime> runtime, MPI_Comm comm, std::string level)
      : WorkerGroup(runtime, runtime->worker(), std::move(level)), runtime_(std::move(runtime)), comm_(comm) {
    MPI_Comm_rank(comm_, &rank_);
    MPI_Comm_size(comm_, &size_);
  }
  ~MpiGroup() override {
    on_worker([] {});
    close_exchange();
    on_worker([this] { MPI_Comm_free(&comm_); });
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  int node() const override { return runtime_->node(); }

  std::unique_ptr<Group> split(int color, const std::string& level) override;
  std::unique_ptr<CommonBlock> common_block(std::int64_t) override { return {}; }
  bool has_common_memory() const override { return runtime_->arena() != nullptr; }

 protected:
  void enter(const Collective& call, const CallId& id) override {
    runtime_->watchdog().begin(id, level(), call.patient ? kPatientTimes : 1);
    require_the_same_call(id);
  }
  void leave() override { runtime_->watchdog().end(); }
  void look(const CallId& call, Waited& waited, double times) override {
    const double patience = job().patience_seconds() * times, seconds = waited.seconds();
    if (patience > 0 && seconds >= patience)
      runtime_->end_job(base::join(described(call), " of '", level(), "'"), seconds);
  }
  void end_all(const std::string& sentence) override { runtime_->end_all(sentence); }

 private:
  // MPI is called by one thread, after all that was posted before.
  void on_worker(const std::function<void()>& act) {
    try {
      worker()->post(act).wait();
    } catch (const std::exception&) {  // what failed was thrown where it was waited for
    }
  }

  void require_the_same_call(const CallId& call) const {
    // The smallest of a number and of its opposite are opposite only when all are equal.
    const auto hash =
        static_cast<std::int64_t>(base::hash64({reinterpret_cast<const char*>(&call), sizeof call}) >> 1);
    std::int64_t ends[] = {hash, -hash};
    require_mpi(MPI_Allreduce(MPI_IN_PLACE, ends, 2, MPI_INT64_T, MPI_MIN, comm_), "MPI_Allreduce");
    if (ends[0] == -ends[1]) return;
    std::vector<CallId> calls(static_cast<std::size_t>(size_));
    require_mpi(MPI_Allgather(&call, sizeof call, MPI_BYTE, calls.data(), sizeof call, MPI_BYTE, comm_),
                "MPI_Allgather");
    const auto other =
        std::ranges::find_if(calls, [&](const CallId& theirs) { return theirs != calls.front(); });
    throw base::PeerError(
        different_calls(level(), 0, calls.front(), static_cast<int>(other - calls.begin()), *other));
  }

  void gather(const Collective& call) override {
    const auto part = call.from.bytes();
    const BytesType type(part, part, largest_);
    auto* all = static_cast<std::byte*>(call.to.data);
    const bool in_place = all + rank_ * part == call.from.data;
    require_mpi(MPI_Allgather(in_place ? MPI_IN_PLACE : call.from.data, in_place ? 0 : 1, type.get(), all, 1,
                              type.get(), comm_),
                "MPI_Allgather");
    note_moved((size_ - 1) * part);
  }

  // Everybody sends each rank its part and adds what comes.
  void reduce(const Collective& call) override {
    const auto* all = static_cast<const std::byte*>(call.from.data);
    in_pieces(call.to, [&](std::int64_t begin, std::int64_t bytes, MPI_Datatype in) {
      const BytesType out(bytes, call.to.bytes(), largest_);
      require_mpi(MPI_Alltoall(all + begin, 1, out.get(), received_.data(), 1, in, comm_), "MPI_Alltoall");
    });
  }

  // For few values: everybody has all of them and adds them.
  void sum_everywhere(const Collective& call) override {
    const auto* values = static_cast<const std::byte*>(call.to.data);
    in_pieces(call.to, [&](std::int64_t begin, std::int64_t bytes, MPI_Datatype in) {
      const BytesType out(bytes, bytes, largest_);
      require_mpi(MPI_Allgather(values + begin, 1, out.get(), received_.data(), 1, in, comm_),
                  "MPI_Allgather");
    });
  }

  // Fills `to` with sums, piece by piece: `exchange` puts a piece of every rank, as `in`, side by side into
  // received_.
  template <typename Exchange>
  void in_pieces(const Buffer& to, const Exchange& exchange) {
    const auto all = to.bytes(), item = size_of(to.type);
    const auto piece = std::max(item, std::min(all, kPiece / item * item));
    received_.resize(static_cast<std::size_t>(piece * size_));
    for (std::int64_t begin = 0; begin < all; begin += piece) {
      const auto bytes = std::min(piece, all - begin);
      const BytesType in(bytes, piece, largest_);
      exchange(begin, bytes, in.get());
      add(bytes, piece, to, begin);
    }
    note_moved((size_ - 1) * all);
  }

  void add(std::int64_t bytes, std::int64_t piece, const Buffer& to, std::int64_t begin) {
    std::vector<const void*> parts;
    for (int rank = 0; rank < size_; ++rank) parts.push_back(received_.data() + rank * piece);
    sum_in_order(parts, bytes / size_of(to.type), to.type, static_cast<std::byte*>(to.data) + begin);
  }

  void spread(const Collective& call) override {
    const auto bytes = call.to.bytes();
    const BytesType type(bytes, bytes, largest_);
    require_mpi(MPI_Bcast(call.to.data, 1, type.get(), call.root, comm_), "MPI_Bcast");
    if (rank_ != call.root) note_moved(bytes);
  }

  std::shared_ptr<MpiRuntime> runtime_;
  MPI_Comm comm_;
  int rank_ = 0, size_ = 1;
  const std::int64_t largest_ = largest_block();
  std::vector<std::byte> received_;  // of the worker's thread
};

// The members of `comm` as a group that uses the memory of their machine.
std::unique_ptr<Group> on_one_machine(const std::shared_ptr<MpiRuntime>& runtime, MPI_Comm comm,
                                      const std::string& level) {
  SharedWorld world{.arena = runtime->arena(), .processes = true};
  std::vector<int> members;
  runtime->worker()
      ->post([&] {
        MPI_Comm_rank(comm, &world.rank);
        MPI_Comm_size(comm, &world.size);
        members.resize(static_cast<std::size_t>(world.size));
        const int own = runtime->local_rank();
        require_mpi(MPI_Allgather(&own, 1, MPI_INT, members.data(), 1, MPI_INT, comm), "MPI_Allgather");
        if (world.rank == 0) world.control = world.arena->take(control_bytes(world.size));
        require_mpi(MPI_Bcast(&world.control, 1, MPI_INT64_T, 0, comm), "MPI_Bcast");
        MPI_Comm_free(&comm);
      })
      .wait();
  return shared_group(world, runtime, runtime->worker(), std::move(members), level);
}

std::unique_ptr<Group> MpiGroup::split(int color, const std::string& level) {
  MPI_Comm part = MPI_COMM_NULL;
  bool one_machine = false;
  worker()
      ->post([&] {
        require_mpi(MPI_Comm_split(comm_, color, rank_, &part), "MPI_Comm_split");
        int ends[] = {runtime_->node(), -runtime_->node()};
        require_mpi(MPI_Allreduce(MPI_IN_PLACE, ends, 2, MPI_INT, MPI_MIN, part), "MPI_Allreduce");
        one_machine = ends[0] == -ends[1];
      })
      .wait();
  if (one_machine && runtime_->arena()) return on_one_machine(runtime_, part, level);
  return std::make_unique<MpiGroup>(runtime_, part, level);
}

}  // namespace

std::unique_ptr<Group> mpi_world(std::shared_ptr<MpiRuntime> runtime) {
  MPI_Comm own = MPI_COMM_NULL;
  runtime->worker()->post([&] { require_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &own), "MPI_Comm_dup"); }).wait();
  if (runtime->is_one_machine()) return on_one_machine(runtime, own, "world");
  return std::make_unique<MpiGroup>(std::move(runtime), own, "world");
}

}  // namespace retort::comm
