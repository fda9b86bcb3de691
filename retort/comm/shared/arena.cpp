#include "retort/comm/shared/arena.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>

#include "retort/base/error.h"
#include "retort/base/machine.h"

namespace retort::comm {
namespace {

// Addresses, not memory: what all models of all stages of a run may take together.  Less where a limit on
// addresses, or a sanitizer, leaves less.
constexpr std::int64_t kMostBytes = std::int64_t{1} << 44, kLeastBytes = std::int64_t{1} << 36;
constexpr std::int64_t kPage = std::int64_t{2} << 20;
constexpr std::size_t kSentence = 1000;
constexpr int kLeft = -1;
enum : int { kRunning = 0, kAborting = 1, kAborted = 2 };

std::int64_t rounded_up(std::int64_t bytes) {
  return (bytes + kPage - 1) / kPage * kPage;
}

void require_system(bool ok, const char* call) {
  base::require<base::EnvironmentError>(ok, "ranks of one machine: ", call,
                                        " of common memory failed: ", base::system_message(errno),
                                        "; run with one rank, or without a limit on addresses (ulimit -v).");
}

bool is_gone(int process) {
  return process > 0 && ::kill(process, 0) != 0 && errno == ESRCH;
}

}  // namespace

struct Arena::Header {
  std::atomic<std::int64_t> next;
  std::atomic<int> state;
  char sentence[kSentence];
  std::atomic<bool> spoken;
  std::atomic<int> processes[kMostLocalRanks];  // 0: not joined yet, kLeft, or the process
  std::atomic<int> names[kMostLocalRanks];
};

Arena::Arena(int file, std::byte* base, std::int64_t bytes) : file_(file), base_(base), bytes_(bytes) {}

std::byte* Arena::mapped(int file, std::int64_t bytes) {
  void* base = ::mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_NORESERVE, file, 0);
  return base == MAP_FAILED ? nullptr : static_cast<std::byte*>(base);
}

Arena::~Arena() {
  ::munmap(base_, static_cast<std::size_t>(bytes_));
  ::close(file_);
}

std::shared_ptr<Arena> Arena::create() {
  static_assert(sizeof(Header) <= kPage && std::atomic<std::int64_t>::is_always_lock_free);
  const int file = ::memfd_create("retort", MFD_CLOEXEC);
  require_system(file >= 0, "memfd_create");
  auto bytes = kMostBytes;
  auto* base = mapped(file, bytes);
  while (!base && bytes > kLeastBytes) base = mapped(file, bytes /= 4);
  const bool ready = base && ::ftruncate(file, bytes) == 0;
  if (!ready) {
    const int error = errno;
    ::close(file);
    errno = error;
  }
  require_system(ready, base ? "ftruncate" : "mmap");
  std::shared_ptr<Arena> arena(new Arena(file, base, bytes));
  arena->header().next = kPage;
  return arena;
}

std::shared_ptr<Arena> Arena::open(int file) {
  const int own = ::fcntl(file, F_DUPFD_CLOEXEC, 0);
  require_system(own >= 0, "dup");
  struct stat status {};
  auto* base = ::fstat(own, &status) == 0 ? mapped(own, status.st_size) : nullptr;
  if (!base) {
    const int error = errno;
    ::close(own);
    errno = error;
  }
  require_system(base, "mmap");
  return std::shared_ptr<Arena>(new Arena(own, base, status.st_size));
}

std::shared_ptr<Arena> Arena::of_process(int process, int file) {
  const int seen = ::open(base::join("/proc/", process, "/fd/", file).c_str(), O_RDWR | O_CLOEXEC);
  if (seen < 0) return {};
  auto arena = open(seen);
  ::close(seen);
  return arena;
}

std::int64_t Arena::take(std::int64_t bytes) {
  const auto offset = header().next.fetch_add(rounded_up(bytes));
  base::require<base::EnvironmentError>(offset + bytes <= bytes_,
                                        "ranks of one machine: the run took more than ", bytes_ >> 30,
                                        " GiB of addresses in common; start it again to go on.");
  return offset;
}

void Arena::give_back(std::int64_t offset, std::int64_t bytes) {
  ::fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, rounded_up(bytes));
}

std::int64_t Arena::offset_of(const void* address) const {
  const auto offset = static_cast<const std::byte*>(address) - base_;
  return offset >= 0 && offset < bytes_ ? offset : -1;
}

void Arena::join(int local_rank, int rank) {
  base::ensure(local_rank >= 0 && local_rank < kMostLocalRanks, "a machine has at most 256 ranks");
  header().names[local_rank] = rank;
  header().processes[local_rank] = ::getpid();
}

void Arena::leave(int local_rank) {
  header().processes[local_rank] = kLeft;
}

int Arena::name_of(int local_rank) const {
  return header().processes[local_rank] == 0 ? local_rank : header().names[local_rank].load();
}

std::string Arena::described(int local_rank) const {
  const int process = header().processes[local_rank];
  return base::join("rank ", name_of(local_rank), " on ", base::host_name(),
                    process > 0 ? base::join(" (process ", process, ")") : "");
}

std::optional<Absent> Arena::missing(std::span<const int> local_ranks) const {
  for (const int rank : local_ranks) {
    const int process = header().processes[rank];
    if (process == kLeft) return Absent{rank, described(rank) + " has ended"};
    if (is_gone(process)) return Absent{rank, described(rank) + " was killed"};
  }
  return {};
}

bool stands_still(int process) {
  std::ifstream file(base::join("/proc/", process, "/stat"));
  std::string text;
  if (process <= 0 || !std::getline(file, text)) return false;
  const auto state = text.rfind(')') + 2;  // the name before it may have any characters
  return state < text.size() && (text[state] == 'T' || text[state] == 't');
}

std::optional<Absent> Arena::stopped(std::span<const int> local_ranks) const {
  for (const int rank : local_ranks)
    if (stands_still(header().processes[rank])) return Absent{rank, described(rank) + " is stopped"};
  return {};
}

int Arena::first_awake() const {
  for (int rank = 0; rank < kMostLocalRanks; ++rank)
    if (const int process = header().processes[rank];
        process > 0 && !is_gone(process) && !stands_still(process))
      return rank;
  return -1;
}

std::string Arena::abort_sentence() const {
  return header().state == kAborted ? header().sentence : std::string();
}

void Arena::abort(const std::string& sentence) noexcept {
  int expected = kRunning;
  if (!header().state.compare_exchange_strong(expected, kAborting)) return;
  std::strncpy(header().sentence, sentence.c_str(), kSentence - 1);
  header().state = kAborted;
}

bool Arena::claim_last_words() noexcept {
  return !header().spoken.exchange(true);
}

}  // namespace retort::comm
