#include "cli/interrupt.h"

#include <unistd.h>

#include <atomic>
#include <csignal>

namespace retort::cli {
namespace {

std::atomic<bool> requested{false}, tells{true};
static_assert(std::atomic<bool>::is_always_lock_free);

extern "C" void on_signal(int signal) {
  if (requested.exchange(true)) ::_exit(128 + signal);
  if (!tells) return;
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
}

bool interrupted() {
  return requested.load();
}

}  // namespace retort::cli
