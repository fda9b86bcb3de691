#include "retort/comm/shared/meeting.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ctime>

#include "retort/base/parallel.h"

namespace retort::comm {
namespace {

constexpr int kSpins = 4000;  // about the time that a sleep and its end take

void pause_processor() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// Sleeps while `word` has this value, at most a tenth of a second.
void sleep_while(std::atomic<std::uint32_t>& word, std::uint32_t value) {
  static_assert(sizeof word == sizeof(std::uint32_t));
  const timespec limit{0, 100'000'000};
  ::syscall(SYS_futex, &word, FUTEX_WAIT, value, &limit, nullptr, 0);
}

void wake_all(std::atomic<std::uint32_t>& word) {
  ::syscall(SYS_futex, &word, FUTEX_WAKE, 1 << 30, nullptr, nullptr, 0);
}

}  // namespace

void meet(Meeting& meeting, int size, const std::function<void()>& look) {
  const auto round = meeting.round.load();
  if (meeting.arrived.fetch_add(1) + 1 == static_cast<std::uint32_t>(size)) {
    meeting.arrived = 0;
    ++meeting.round;
    wake_all(meeting.round);
    return;
  }
  static const bool may_spin = base::usable_processors() > 1;
  for (int spin = 0; may_spin && spin < kSpins; ++spin) {
    if (meeting.round != round) return;
    pause_processor();
  }
  while (meeting.round == round) {
    sleep_while(meeting.round, round);
    if (meeting.round == round) look();
  }
}

}  // namespace retort::comm
