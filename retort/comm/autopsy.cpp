// Which rank a job ended with.  A rank that failed by itself says so.  One that was killed says nothing,
// while the others end because it is missing, and the first of them may say whom it missed.  Where all were
// killed, its heart stopped first, or it had made fewer calls than those that waited for it.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "retort/base/error.h"
#include "retort/base/machine.h"
#include "retort/comm/flight.h"

namespace retort::comm {
namespace {

using Records = std::vector<const FlightRecord*>;

constexpr std::int64_t kGap_ns = 300'000'000;  // hearts beat every 50 ms
constexpr std::size_t kNamed = 8;              // of ranks that ended at the same time

std::string place_of(const FlightRecord& record) {
  if (record.step == 0) return record.phase.empty() ? "before the first stage" : "in " + record.phase;
  return base::join("in step ", record.step, record.phase.empty() ? "" : ", " + record.phase);
}

std::string_view level_of(const FlightCall& call) {
  return {call.level, ::strnlen(call.level, sizeof call.level)};
}

std::string last_call(const FlightRecord& record) {
  if (record.calls.empty()) return "it had made no call";
  const auto& last = record.calls.back();
  return base::join("its last call was ", described(last.call), ", number ", last.call.number, " of '",
                    level_of(last), "'");
}

Records with_state(const std::vector<FlightRecord>& records, RankState state) {
  Records found;
  for (const auto& record : records)
    if (record.state == state) found.push_back(&record);
  return found;
}

// Of ranks that went without a word, one of those that went first, if others outlived them; else the one that
// had made fewer calls.  Null: not to be told.
const FlightRecord* first_gone(Records gone) {
  std::ranges::sort(gone, {}, &FlightRecord::alive_ns);
  const auto last = std::ranges::adjacent_find(
      gone, [](const auto* one, const auto* next) { return one->alive_ns + kGap_ns < next->alive_ns; });
  const bool outlived = last != gone.end();
  if (outlived) gone.erase(last + 1, gone.end());
  const auto* first = gone.front();
  if (gone.size() == 1) return first;
  std::ranges::sort(gone, {}, &FlightRecord::posted);
  if (gone[0]->posted < gone[1]->posted) return gone[0];
  return outlived ? first : nullptr;
}

// Whom the first rank that ended missed; null: it does not say.
const FlightRecord* missed_first(const std::vector<FlightRecord>& records) {
  const auto ended = with_state(records, RankState::ended);
  if (ended.empty()) return nullptr;
  const auto& first = **std::ranges::min_element(ended, {}, &FlightRecord::failed_ns);
  const auto missed = std::ranges::find_if(
      records, [&](const auto& record) { return first.sentence.starts_with(described(record)); });
  return missed == records.end() ? nullptr : &*missed;
}

// Those that went at the time of one that was killed: a system that lacks memory may kill several.
std::string gone_with(const FlightRecord& killed, const Records& gone) {
  std::vector<std::string> others;
  for (const auto* record : gone)
    if (record != &killed && std::abs(record->alive_ns - killed.alive_ns) <= kGap_ns)
      others.push_back(described(*record));
  return at_the_same_time(others);
}

}  // namespace

std::string described(const FlightRecord& record) {
  return base::join("rank ", record.rank, " on ", record.host, " (process ", record.process, ")");
}

std::string last_place(const FlightRecord& record) {
  return base::join(place_of(record), "; ", last_call(record));
}

std::string at_the_same_time(const std::vector<std::string>& others) {
  std::string text;
  for (std::size_t i = 0; i < std::min(others.size(), kNamed); ++i)
    text += (i == 0 ? "; at the same time " : ", ") + others[i];
  return others.size() > kNamed ? base::join(text, " and ", others.size() - kNamed, " more") : text;
}

Autopsy autopsy(const std::vector<FlightRecord>& records,
                const std::function<bool(const std::string& host, int process)>& is_running) {
  const auto all_finished =
      std::ranges::all_of(records, [](const auto& record) { return record.state == RankState::finished; });
  if (all_finished) return {};
  if (auto failed = with_state(records, RankState::failed); !failed.empty()) {
    const auto& first = **std::ranges::min_element(failed, {}, &FlightRecord::failed_ns);
    return {false, first.rank,
            base::join(described(first), " failed ", last_place(first), ": ", first.sentence)};
  }
  const auto gone = with_state(records, RankState::running);
  const auto* first = missed_first(records);
  if (!first &&
      gone.empty())  // all heard the same: a rank that was late and came in the end, or different calls
    return {false, -1, with_state(records, RankState::ended).front()->sentence};
  if (!first) first = first_gone(gone);
  if (!first)
    return {false, -1,
            base::join(gone.size(), " ranks of ", records.size(),
                       " ended at the same time without a word; their machines or the launcher ended them.")};
  const bool woke = first->state != RankState::running;
  const bool hangs = woke || is_running(first->host, first->process);
  return {false, first->rank,
          base::join(described(*first), hangs ? " hangs or was stopped " : " was killed ", last_place(*first),
                     hangs ? "" : gone_with(*first, gone), ".")};
}

Autopsy autopsy(const std::vector<FlightRecord>& records) {
  return autopsy(records, [own = base::host_name()](const std::string& host, int process) {
    return host == own && process > 0 && (::kill(process, 0) == 0 || errno == EPERM);
  });
}

}  // namespace retort::comm
