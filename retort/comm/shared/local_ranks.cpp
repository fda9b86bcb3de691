#include "retort/comm/shared/local_ranks.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <span>
#include <thread>

#include "retort/base/error.h"
#include "retort/base/machine.h"
#include "retort/base/parallel.h"
#include "retort/comm/flight.h"
#include "retort/comm/shared/arena.h"
#include "retort/comm/shared/shared_group.h"

namespace retort::comm {
namespace {

constexpr const char* kRank = "RETORT_RANK";
constexpr const char* kRanks = "RETORT_RANKS";
constexpr const char* kFile = "RETORT_COMMON_MEMORY";
constexpr const char* kControl = "RETORT_COMMON_CONTROL";
constexpr double kGrace_seconds = 20, kGraceOfStopped_seconds = 1;
constexpr std::chrono::milliseconds kLook{20};  // from one look at the ranks to the next
// A system that lacks memory may end two ranks within milliseconds, and the second may be gone first.
constexpr std::chrono::milliseconds kSameTime{200};
constexpr int kStopSignals[] = {SIGINT, SIGTERM, SIGUSR1, SIGHUP};

// The ranks that a signal goes on to.
std::atomic<int> children[kMostLocalRanks];

extern "C" void pass_on(int signal) {
  for (const auto& child : children)
    if (const int process = child; process > 0) ::kill(process, signal);
}

void pass_signals_on() {
  ::signal(SIGCHLD, SIG_DFL);  // ignored by a parent, it would have the system forget how ranks ended
  struct sigaction action {};
  action.sa_handler = pass_on;
  ::sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  for (const int signal : kStopSignals) {
    struct sigaction before {};
    const bool kept_from = signal == SIGHUP && ::sigaction(signal, nullptr, &before) == 0 &&
                           before.sa_handler == SIG_IGN;  // nohup, which ranks inherit
    if (!kept_from) ::sigaction(signal, &action, nullptr);
  }
}

// What is allowed between fork and exec: the new process must not touch memory that a thread may have locked.
[[noreturn]] void become(const std::vector<char*>& arguments, const std::vector<char*>& environment,
                         int file) {
  ::setpgid(0, 0);  // Ctrl-C comes to the parent alone, which passes it on once
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  ::fcntl(file, F_SETFD, 0);
  ::execve("/proc/self/exe", arguments.data(), environment.data());
  ::_exit(127);
}

std::vector<std::string> environment_of(int rank, int ranks, int file, std::int64_t control) {
  std::vector<std::string> variables;
  for (char** variable = environ; *variable; ++variable) variables.emplace_back(*variable);
  variables.push_back(base::join(kRank, "=", rank));
  variables.push_back(base::join(kRanks, "=", ranks));
  variables.push_back(base::join(kFile, "=", file));
  variables.push_back(base::join(kControl, "=", control));
  if (!std::getenv("OMP_NUM_THREADS"))
    variables.push_back(
        base::join("OMP_NUM_THREADS=", std::max(1, static_cast<int>(base::usable_processors()) / ranks)));
  return variables;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> list;
  for (auto& text : strings) list.push_back(text.data());
  list.push_back(nullptr);
  return list;
}

int start(std::vector<std::string> command, std::vector<std::string> variables, int file) {
  const auto arguments = pointers(command), environment = pointers(variables);
  const int process = ::fork();
  if (process == 0) become(arguments, environment, file);
  base::require<base::EnvironmentError>(
      process > 0, "--ranks: a process could not be started: ", base::system_message(errno), ".");
  return process;
}

int number_of(const char* variable) {
  const char* text = std::getenv(variable);
  base::require<base::EnvironmentError>(text && *text, variable,
                                        " is missing; ranks are started with retort run --ranks.");
  return std::atoi(text);
}

// A rank whose process has ended; the process stays to be waited for, so that the others do not miss it yet.
struct Ended {
  std::size_t rank = 0;
  int process = 0;
  bool by_signal = false;
  int status = 0;  // exit code, or the signal
};

std::vector<Ended> ended_ranks(std::size_t ranks) {
  std::vector<Ended> ended;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const int process = children[rank];
    siginfo_t info{};
    if (process <= 0 ||
        ::waitid(P_PID, static_cast<id_t>(process), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
        info.si_pid == 0)
      continue;
    ended.push_back({rank, process, info.si_code != CLD_EXITED, info.si_status});
  }
  return ended;
}

bool failed(const Ended& end) {
  const auto code = static_cast<base::ExitCode>(end.status);
  return end.by_signal || (code != base::ExitCode::ok && code != base::ExitCode::stopped);
}

// Its process number may then be another's.
void forget(const Ended& end) {
  children[end.rank] = 0;
  ::waitpid(end.process, nullptr, 0);
}

// The first with all that is known of it, the others beside it.  There is one at least.
std::string sentence_of(const std::vector<Ended>& killed, const LastPlace& last_place) {
  const auto signal = [](const Ended& end) {
    return base::join(" by signal ", end.status, " (", ::strsignal(end.status), ")");
  };
  const auto& first = killed.front();
  const auto place = last_place ? last_place(first.rank, first.process) : "";
  std::vector<std::string> others;
  for (const auto& end : std::span(killed).subspan(1))
    others.push_back(base::join("rank ", end.rank, " (process ", end.process, ")", signal(end)));
  return base::join("rank ", first.rank, " on ", base::host_name(), " (process ", first.process,
                    ") was ended", signal(first), place.empty() ? "" : " ", place, at_the_same_time(others),
                    "; start the same command again to go on from what is kept.");
}

// `why`: what the first ended with, where that is known; a signal from here followed, or it was the first.
RankEnd end_of(const Ended& end, const std::string& why, const LastPlace& last_place) {
  if (!end.by_signal) return {.code = end.status, .sentence = {}};
  return {.code = 0, .sentence = why.empty() ? sentence_of({end}, last_place) : why};
}

// Ends those that do not end by themselves after another has failed.  One that is stopped does not hear that
// the others have gone.
void end_the_rest(double seconds_since, std::span<bool> ended_here) {
  for (std::size_t rank = 0; rank < ended_here.size(); ++rank) {
    const int process = children[rank];
    const bool waits =
        seconds_since < kGraceOfStopped_seconds || (seconds_since < kGrace_seconds && !stands_still(process));
    if (process <= 0 || waits) continue;
    ended_here[rank] = true;
    ::kill(process, SIGKILL);
  }
}

}  // namespace

std::vector<RankEnd> run_local_ranks(int ranks, const std::vector<std::string>& command,
                                     const LastPlace& last_place) {
  base::require<base::UsageError>(ranks >= 1 && ranks <= kMostLocalRanks, "--ranks: expected 1 to ",
                                  kMostLocalRanks, ", found ", ranks, ".");
  const auto arena = Arena::create();
  const auto control = arena->take(control_bytes(ranks));
  pass_signals_on();
  for (int rank = 0; rank < ranks; ++rank)
    children[rank] = start(command, environment_of(rank, ranks, arena->file(), control), arena->file());

  std::vector<RankEnd> ends(static_cast<std::size_t>(ranks));
  std::array<bool, kMostLocalRanks> ended_here{};
  std::optional<double> failed_at;
  for (auto running = ends.size(); running > 0;) {
    std::this_thread::sleep_for(kLook);
    auto ended = ended_ranks(ends.size());
    if (!failed_at && std::ranges::any_of(ended, failed)) {
      failed_at = base::monotonic_seconds();
      std::this_thread::sleep_for(kSameTime);
      ended = ended_ranks(ends.size());
    }
    auto killed = ended;
    std::erase_if(killed, [&](const Ended& end) { return !end.by_signal || ended_here[end.rank]; });
    if (!killed.empty()) arena->abort(sentence_of(killed, last_place));
    for (const auto& end : ended) {
      ends[end.rank] = end_of(end, arena->abort_sentence(), last_place);
      forget(end);
    }
    running -= ended.size();
    if (failed_at) end_the_rest(base::monotonic_seconds() - *failed_at, {ended_here.data(), ends.size()});
  }
  return ends;
}

bool is_local_rank() {
  return std::getenv(kRank) && std::getenv(kFile);
}

std::unique_ptr<Group> local_group() {
  // By ps and top it would be shown as "exe", the name that it was started by.
  ::prctl(PR_SET_NAME, program_invocation_short_name);
  return shared_group({.arena = Arena::open(number_of(kFile)),
                       .control = number_of(kControl),
                       .rank = number_of(kRank),
                       .size = number_of(kRanks),
                       .processes = true});
}

}  // namespace retort::comm
