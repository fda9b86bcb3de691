#pragma once
// Memory that the ranks of one machine have in common: a sparse file that has no name and no place in a file
// system, mapped by each of them.  Pages exist once they are touched, so its size is only a limit on
// addresses, and no mount of /dev/shm can be too small for it.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace retort::comm {

/// Ranks that one machine may have.
inline constexpr int kMostLocalRanks = 256;

/// Whether a process is stopped, by SIGSTOP or a debugger.
bool stands_still(int process);

/// A rank that others wait for in vain.
struct Absent {
  int local_rank = 0;
  std::string sentence;  ///< "rank 2 on node7 (process 12) is stopped"
};

class Arena : public std::enable_shared_from_this<Arena> {
 public:
  /// A new one.  Throws EnvironmentError.
  static std::shared_ptr<Arena> create();
  /// The one behind a file descriptor, which stays the caller's.  Throws EnvironmentError.
  static std::shared_ptr<Arena> open(int file);
  /// The one behind file descriptor `file` of another process of the same user; null where the system does
  /// not let it be seen.
  static std::shared_ptr<Arena> of_process(int process, int file);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  int file() const { return file_; }
  /// Takes `bytes`, all zero, for good or until given back; returns their offset.  Any rank may call it.
  std::int64_t take(std::int64_t bytes);
  /// The memory goes back to the system; the addresses are not used again.
  void give_back(std::int64_t offset, std::int64_t bytes);

  std::byte* at(std::int64_t offset) const { return base_ + offset; }
  /// Where an address lies; -1 when it is not in the arena.
  std::int64_t offset_of(const void* address) const;

  /// The ranks that are here, so that a wait for one that died ends.  `rank` is its name among those of all
  /// machines.
  void join(int local_rank, int rank);
  void leave(int local_rank);
  /// The name that a rank joined with.
  int name_of(int local_rank) const;
  /// "rank 2 on node7 (process 12)"; without the process where that has not joined, or has left.
  std::string described(int local_rank) const;
  /// The first of these ranks that died or left; nothing as long as all that joined are here.
  std::optional<Absent> missing(std::span<const int> local_ranks) const;
  /// The first of these ranks whose process stands still.
  std::optional<Absent> stopped(std::span<const int> local_ranks) const;
  /// The first rank that is here and does not stand still; -1: none.
  int first_awake() const;

  /// The first sentence that anybody aborted with; empty: none.
  std::string abort_sentence() const;
  void abort(const std::string& sentence) noexcept;
  /// True for the first that asks: the one rank that tells the user what all aborted with.
  bool claim_last_words() noexcept;

 private:
  struct Header;
  Arena(int file, std::byte* base, std::int64_t bytes);
  /// Null where so many addresses are not to be had.
  static std::byte* mapped(int file, std::int64_t bytes);
  Header& header() const { return *reinterpret_cast<Header*>(base_); }

  int file_ = -1;
  std::byte* base_ = nullptr;
  std::int64_t bytes_ = 0;
};

}  // namespace retort::comm
