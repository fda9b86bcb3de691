#pragma once
// What a rank was doing: its last calls, its step and phase, in a mapped file that outlives the process
// however that ends.

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "retort/base/words.h"
#include "retort/comm/call.h"

namespace retort::comm {

enum class CallState : std::int32_t { posted, begun, ended };
constexpr auto words_of(CallState) {
  return base::words<CallState::ended>("posted", "begun", "ended");
}

/// One collective of a rank.
struct FlightCall {
  CallId call;
  std::uint64_t hash =
      0;  ///< of operation, type, count, root, number and group: equal on ranks at the same call
  CallState state = CallState::posted;
  std::int32_t step = 0;
  std::int64_t time_ns = 0;  ///< of the last change of `state`, since 1970
  char level[16] = "";
};

/// `ended`: because another rank failed or went.
enum class RankState : std::int32_t { running, finished, failed, ended };
constexpr auto words_of(RankState) {
  return base::words<RankState::ended>("running", "finished", "failed", "ended");
}

/// What the file of a rank holds.
struct FlightRecord {
  int rank = 0, size = 1, process = 0;
  std::string host, phase, sentence;  ///< `sentence`: why it failed by itself
  std::int64_t step = 0;
  RankState state = RankState::running;
  std::int64_t alive_ns = 0;      ///< when it was last seen running, since 1970
  std::int64_t failed_ns = 0;     ///< when it failed
  std::int64_t posted = 0;        ///< calls in all
  std::vector<FlightCall> calls;  ///< the last ones, the oldest first
};

struct FlightFile;

class Flight {
 public:
  static constexpr std::int64_t kCalls = 256;

  /// Begins the file of a rank, in place of one that is there.  Throws StorageError.
  Flight(const std::filesystem::path& path, int rank, int size);
  /// finished() where that was not called.
  ~Flight();
  Flight(const Flight&) = delete;
  Flight& operator=(const Flight&) = delete;

  /// Where the records of all ranks are.
  const std::filesystem::path& directory() const { return directory_; }
  int rank() const;

  /// Notes a call that was posted; returns its place for what follows.
  std::int64_t posted(const CallId& call, std::string_view level);
  void begun(std::int64_t place);
  void ended(std::int64_t place);
  /// The step that is computed, and the part of it.
  void at(std::int64_t step, std::string_view phase);
  /// Gives what was noted to other machines, where the file system waits with that.
  void flush() noexcept;
  /// The rank has done all of its work, unless it failed; other machines see it at once.
  void finished() noexcept;
  /// Why the rank ends: by itself, or (`by_another`) because another did.  The first reason stays.
  void failed(std::string_view sentence, bool by_another) noexcept;
  /// It goes on after a failure that all ranks have dealt with.
  void recovered() noexcept;

 private:
  void beat(const std::stop_token& stop);

  std::filesystem::path directory_;
  FlightFile* file_ = nullptr;
  std::jthread heart_;
};

/// The record of a file; nothing where it is none, or one that no rank has written so.  Throws StorageError.
std::optional<FlightRecord> read_flight(const std::filesystem::path& file);
/// The records of a directory that ranks wrote, by rank.  Files that hold none are left out.
std::vector<FlightRecord> read_flights(const std::filesystem::path& directory);
/// Names of files of ranks that read_flights() leaves out, in a row; empty where all are sound.
std::string damaged_flights(const std::filesystem::path& directory);
/// The record of a rank; nothing where it has none, or none that can be read now.
std::optional<FlightRecord> flight_of(const std::filesystem::path& directory, int rank) noexcept;
/// "rank 2 on node7 (process 102)"
std::string described(const FlightRecord& record);
/// "in step 5, student, forward; its last call was all_reduce of 2 f64, number 8 of 'world'"
std::string last_place(const FlightRecord& record);
/// "; at the same time rank 2, rank 3": what follows on the sentence of a rank that ended.  Names eight, and
/// says how many more there are; empty for none.
std::string at_the_same_time(const std::vector<std::string>& others);
/// Whether a file of this name is a rank's.
bool is_flight_name(const std::string& name);
/// The file of a rank.
std::filesystem::path flight_path(const std::filesystem::path& directory, int rank);

/// How a job ended, from what its ranks left.
struct Autopsy {
  bool clean = true;     ///< every rank finished
  int culprit = -1;      ///< the rank that failed first or that the others waited for; -1: not to be told
  std::string sentence;  ///< one sentence; empty when clean
};
/// `is_running` tells whether a process still runs on the host of that name.
Autopsy autopsy(const std::vector<FlightRecord>& records,
                const std::function<bool(const std::string& host, int process)>& is_running);
/// The same, asking this machine of its own processes.
Autopsy autopsy(const std::vector<FlightRecord>& records);

}  // namespace retort::comm
