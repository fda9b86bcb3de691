#include "retort/comm/mpi/runtime.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "retort/base/error.h"
#include "retort/comm/flight.h"

namespace retort::comm {
namespace {

constexpr auto kGraceOfAbort = std::chrono::seconds(2), kGraceOfFirst = std::chrono::seconds(10);

// What the first rank of a machine says of its arena; the secret stands in it, so that another process with
// this number, of another container, is not taken for it.
struct ArenaPlace {
  int process = 0, file = -1;
  std::int64_t offset = 0;
  std::uint64_t secret = 0;
};

std::uint64_t random_number() {
  std::random_device device;
  return (std::uint64_t{device()} << 32) | device();
}

int smallest(int value, MPI_Comm comm) {
  require_mpi(MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_INT, MPI_MIN, comm), "MPI_Allreduce");
  return value;
}

void start_mpi() {
  // A rank that waits would take the processor from one that computes.
  ::setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);
  int provided = MPI_THREAD_SINGLE;
  require_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided), "MPI_Init_thread");
  base::require<base::EnvironmentError>(
      provided >= MPI_THREAD_SERIALIZED,
      "MPI: expected support of threads, found a library without; use one that "
      "was built with MPI_THREAD_SERIALIZED.");
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
}

}  // namespace

void require_mpi(int result, const char* call) {
  if (result == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(result, text, &length);
  throw base::PeerError(
      base::join(call, ": ", text, "; start the same command again to go on from what is kept."));
}

// Open MPI's MPI_Abort waits for a launcher, which may be ending the job already and give ranks minutes for
// it.
void abort_all_ranks() noexcept {
  constexpr int kCode = static_cast<int>(base::ExitCode::temporary);
  try {
    std::thread([] {
      std::this_thread::sleep_for(kGraceOfAbort);
      ::_exit(kCode);
    }).detach();
  } catch (...) {  // no thread is to be had
    ::_exit(kCode);
  }
  MPI_Abort(MPI_COMM_WORLD, kCode);
}

MpiRuntime::MpiRuntime(int launched_ranks, LastWords last_words) : last_words_(last_words) {
  start_mpi();
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &size_);
  base::require<base::EnvironmentError>(
      launched_ranks <= 0 || launched_ranks == size_, "the launcher started ", launched_ranks,
      " ranks, but MPI knows ", size_,
      "; use the mpirun of the MPI library that Retort was built with, or srun ",
      "--mpi=pmix (Open MPI) or --mpi=pmi2 (MPICH).");
  find_node();
  share_arena();
  divide_processors();
  agree_on_patience();
  worker_ = std::make_shared<Worker>();
  watchdog_ =
      std::make_unique<Watchdog>([this] { return patience_seconds(); },
                                 [this](const std::string& call, double seconds) { end_job(call, seconds); });
}

void MpiRuntime::record(std::shared_ptr<Flight> flight) {
  Job::record(flight);
  constexpr double kLeast_seconds = 1;  // hearts beat every 50 ms
  const double patience = least_patience_seconds();
  if (is_one_machine() || patience <= 0) return;
  neighbour_ = std::make_unique<NeighbourWatch>(std::move(flight), (rank_ + 1) % size_,
                                                std::max(kLeast_seconds, patience),
                                                [this](double seconds) { end_silent(seconds); });
}

void MpiRuntime::abort(const std::string& sentence) noexcept {
  is_one_machine() ? arena_->abort(sentence) : abort_all_ranks();
}

// The watch knows who is silent, so no other record is asked.
void MpiRuntime::end_silent(double seconds) const {
  const int neighbour = (rank_ + 1) % size_;
  const auto who =
      culprit_of(base::join("rank ", neighbour, " hangs or was stopped."), [&](const Flight& own) {
        const auto record = read_flight(flight_path(own.directory(), neighbour));
        return record ? std::vector{*record} : std::vector<FlightRecord>{};
      });
  end_all(base::join(who, " Nothing was heard of it for ", static_cast<std::int64_t>(seconds),
                     " s; start the same command again to go on from what is kept."));
}

// Every rank that waits comes here at about the same time: the first one speaks for all, unless it is the one
// that hangs.
void MpiRuntime::end_job(const std::string& call, double seconds) const {
  std::this_thread::sleep_for(std::chrono::milliseconds(200) * std::min(rank_, 20));
  const auto who = culprit_of("a rank hangs or was stopped.",
                              [](const Flight& own) { return read_flights(own.directory()); });
  end_all(base::join(who, " Others waited for it in ", call, " for ", static_cast<std::int64_t>(seconds),
                     " s; start the same command again to go on from what is kept."));
}

// What the records say of who is to blame; `otherwise` where they say nothing, or are gone with their
// storage.
std::string MpiRuntime::culprit_of(std::string otherwise, const ReadRecords& read) const {
  try {
    if (const auto own = flight())
      if (const auto found = autopsy(read(*own), [](const auto&, int) { return true; }); found.culprit >= 0)
        return found.sentence;
  } catch (const std::exception&) {  // on a watch's thread nothing may be thrown
  }
  return otherwise;
}

// The launcher wakes a rank that was stopped, to end it; that one would miss the others.
std::string MpiRuntime::said_by_another() const {
  try {
    if (const auto own = flight())
      for (const auto& record : read_flights(own->directory()))
        if (record.rank != rank_ && (record.state == RankState::ended || record.state == RankState::failed))
          return record.sentence;
  } catch (const std::exception&) {  // on a watch's thread nothing may be thrown
  }
  return {};
}

void MpiRuntime::end_all(const std::string& sentence) const {
  const auto before = said_by_another();
  if (const auto own = flight()) own->failed(before.empty() ? sentence : before, /*by_another=*/true);
  if (last_words_ && before.empty()) last_words_(sentence);
  // The worker is within a call that never ends, so nothing else of MPI is called in this process.
  abort_all_ranks();
}

// The launcher ends all when one has ended, so the rank that says why goes first: rank 0, or where that
// stands still the next one.
void MpiRuntime::wait_for_last_words() const {
  using Clock = std::chrono::steady_clock;
  for (const auto end = Clock::now() + kGraceOfFirst;
       arena_->first_awake() != local_rank_ && Clock::now() < end;)
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  if (arena_->claim_last_words() && last_words_) last_words_(arena_->abort_sentence());
}

MpiRuntime::~MpiRuntime() {
  const bool aborted = arena_ && !arena_->abort_sentence().empty();
  if (aborted) {
    if (rank_ != 0) wait_for_last_words();
    return;
  }
  neighbour_.reset();
  watchdog_.reset();
  // Before the wait for the others, who may still be at work and miss a record that does not change.
  if (const auto own = flight()) own->finished();
  worker_.reset();
  set_accelerator(nullptr, nullptr);
  if (arena_) arena_->leave(local_rank_);
  MPI_Comm_free(&on_node_);
  MPI_Finalize();
}

void MpiRuntime::find_node() {
  MPI_Comm machine = MPI_COMM_NULL;
  require_mpi(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &machine),
              "MPI_Comm_split_type");
  int place = 0;
  MPI_Comm_rank(machine, &place);
  const char* text = std::getenv("RETORT_RANKS_PER_NODE");
  const int per_node = text ? std::max(1, std::atoi(text)) : kMostLocalRanks;
  require_mpi(MPI_Comm_split(machine, place / per_node, place, &on_node_), "MPI_Comm_split");
  MPI_Comm_free(&machine);
  MPI_Comm_rank(on_node_, &local_rank_);
  MPI_Comm_size(on_node_, &local_size_);
  node_ = smallest(rank_, on_node_);
}

void MpiRuntime::share_arena() {
  ArenaPlace place;
  if (local_rank_ == 0) {
    arena_ = Arena::create();
    place = {.process = ::getpid(),
             .file = arena_->file(),
             .offset = arena_->take(sizeof place.secret),
             .secret = random_number()};
    std::memcpy(arena_->at(place.offset), &place.secret, sizeof place.secret);
  }
  require_mpi(MPI_Bcast(&place, sizeof place, MPI_BYTE, 0, on_node_), "MPI_Bcast");
  if (local_rank_ != 0) arena_ = Arena::of_process(place.process, place.file);
  const bool seen = arena_ && std::memcmp(arena_->at(place.offset), &place.secret, sizeof place.secret) == 0;
  if (smallest(seen ? 1 : 0, MPI_COMM_WORLD) == 0) {
    arena_.reset();
    return;
  }
  arena_->join(local_rank_, rank_);
}

// The launcher may give its environment to the ranks of its own machine only.
void MpiRuntime::agree_on_patience() const {
  double seconds = least_patience_seconds();
  require_mpi(MPI_Bcast(&seconds, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD), "MPI_Bcast");
  ::setenv("RETORT_PATIENCE_SECONDS", std::to_string(seconds).c_str(), 1);
}

// Ranks that may run on the same processors share them.  libgomp reads the variable when it is loaded.
void MpiRuntime::divide_processors() const {
  cpu_set_t own;
  CPU_ZERO(&own);
  if (std::getenv("OMP_NUM_THREADS") || ::sched_getaffinity(0, sizeof own, &own) != 0) return;
  std::vector<cpu_set_t> all(static_cast<std::size_t>(local_size_));
  require_mpi(MPI_Allgather(&own, sizeof own, MPI_BYTE, all.data(), sizeof own, MPI_BYTE, on_node_),
              "MPI_Allgather");
  const auto sharers =
      std::ranges::count_if(all, [&](const cpu_set_t& other) { return CPU_EQUAL(&own, &other); });
  const auto threads = std::max<std::int64_t>(1, CPU_COUNT(&own) / sharers);
  ::setenv("OMP_NUM_THREADS", std::to_string(threads).c_str(), 0);
}

}  // namespace retort::comm
