// Which rank a job ended with.  A rank that failed by itself says so.  One that was killed says nothing,
// while the others end because it is missing, and the first of them may say whom it missed.  Where all were
// killed, its heart stopped first, or it had made fewer calls than those that waited for it.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "retort/base/error.h"
#include "retort/base/machine.h"
#include "retort/comm/flight.h"

namespace retort::comm {
namespace {

using Records = std::vector<const FlightRecord*>;

constexpr std::int64_t kGap_ns = 300'000'000;  // hearts beat every 50 ms

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

bool in_team(const FlightRecord* record) {
  return std::ranges::any_of(record->calls, [](const FlightCall& call) { return level_of(call) == "team"; });
}

// Of ranks that went without a word, the one that went first; null: not to be told.
const FlightRecord* first_gone(const Records& gone) {
  if (gone.size() == 1) return gone.front();
  const auto decided = [&](auto member, std::int64_t gap) -> const FlightRecord* {
    auto order = gone;
    std::ranges::sort(order, {}, member);
    return order[0]->*member + gap < order[1]->*member ? order[0] : nullptr;
  };
  if (const auto* first = decided(&FlightRecord::alive_ns, kGap_ns)) return first;
  if (std::ranges::any_of(gone, in_team)) return nullptr;  // which have made unlike numbers of calls
  return decided(&FlightRecord::posted, 0);
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

}  // namespace

std::string described(const FlightRecord& record) {
  return base::join("rank ", record.rank, " on ", record.host, " (process ", record.process, ")");
}

std::string last_place(const FlightRecord& record) {
  return base::join(place_of(record), "; ", last_call(record));
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
                     ".")};
}

Autopsy autopsy(const std::vector<FlightRecord>& records) {
  return autopsy(records, [own = base::host_name()](const std::string& host, int process) {
    return host == own && process > 0 && (::kill(process, 0) == 0 || errno == EPERM);
  });
}

}  // namespace retort::comm
