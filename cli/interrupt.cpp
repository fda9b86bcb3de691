#include "cli/interrupt.h"

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <ctime>

namespace retort::cli {
namespace {

// `timeout` and some schedulers send a signal to a process and once more to its group.
constexpr std::int64_t kOneRequest_milliseconds = 500;

std::atomic<bool> requested{false}, tells{true};
std::atomic<std::int64_t> first_milliseconds[NSIG];  // when each signal came first
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<std::int64_t>::is_always_lock_free);

std::int64_t now_milliseconds() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000 + now.tv_nsec / 1'000'000;
}

extern "C" void on_signal(int signal) {
  const auto now = now_milliseconds();
  std::int64_t first = 0;
  if (!first_milliseconds[signal].compare_exchange_strong(first, now) &&
      now - first >= kOneRequest_milliseconds && signal != SIGHUP)
    ::_exit(128 + signal);
  if (requested.exchange(true) || !tells) return;
  constexpr char kText[] = "\nretort: finishing the step and saving; once more quits at once\n";
  if (::write(STDERR_FILENO, kText, sizeof kText - 1) < 0) return;
}

}  // namespace

void catch_interrupts(bool tell) {
  tells = tell;
  struct sigaction action {};
  action.sa_handler = on_signal;
  ::sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  ::sigaction(SIGUSR1, &action, nullptr);  // what schedulers send before their limit
  struct sigaction before {};
  const bool is_kept_from_it =
      ::sigaction(SIGHUP, nullptr, &before) == 0 && before.sa_handler == SIG_IGN;  // nohup
  if (!is_kept_from_it) ::sigaction(SIGHUP, &action, nullptr);
}

bool interrupted() {
  return requested.load();
}

}  // namespace retort::cli
