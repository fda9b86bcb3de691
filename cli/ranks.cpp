#include "cli/ranks.h"

#include <atomic>
#include <iostream>

#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/standard_streams.h"
#include "retort/base/error.h"
#include "retort/comm/flight.h"
#include "retort/comm/shared/local_ranks.h"
#include "retort/record/run_files.h"

namespace retort::cli {
namespace {

using Act = std::function<base::ExitCode(record::Observer&)>;

std::atomic<comm::Group*> own_group{nullptr};  // while this process acts as a rank

struct OwnGroup {
  explicit OwnGroup(comm::Group& group) { own_group = &group; }
  ~OwnGroup() { own_group = nullptr; }
};

class Silent final : public record::Observer {
 public:
  bool stop_requested() const override { return interrupted(); }
};

// Ends the others, unless they fail together with this rank; returns why.  Where they do not hear it, all are
// ended, so it is said here.
std::string end_all(comm::Group& group, const std::string& what, bool by_another) {
  if (group.failed_together() || group.size() == 1) return what;
  const auto sentence = by_another ? what : base::join(group.job().place(group.rank()), ": ", what);
  group.job().note_failure(what, by_another);
  if (!group.job().abort_is_heard()) say_last_words(sentence);
  group.job().abort(sentence);
  return sentence;
}

bool is_by_another(const base::Error& error) {
  return error.code() == base::ExitCode::temporary;
}

base::ExitCode act_silently(comm::Group& group, const Act& act) {
  Silent observer;
  try {
    return translated([&] { return act(observer); });
  } catch (const base::Error& error) {
    end_all(group, error.what(), is_by_another(error));
    return error.code();
  } catch (const std::exception& error) {
    end_all(group, error.what(), false);
    return base::ExitCode::internal;
  }
}

// It speaks for all, unless it stood still and another has done so.  At once: while the group ends, a
// launcher that saw another rank's code may end this one.
base::ExitCode act_and_speak(comm::Group& group, record::Observer& observer, const Act& act) {
  const auto end = [&](const char* kind, const std::string& what, bool by_another) {
    const auto sentence = end_all(group, what, by_another);
    if (group.job().claim_last_words()) say(base::join("retort: ", kind), sentence);
  };
  try {
    const auto code = translated([&] { return act(observer); });
    std::cout.flush();
    return code;
  } catch (const base::Error& error) {
    if (group.size() == 1) throw;
    end(kError, error.what(), is_by_another(error));
    return error.code();
  } catch (const std::exception& error) {
    if (group.size() == 1) throw;
    end(kInternalError, error.what(), false);
    return base::ExitCode::internal;
  }
}

}  // namespace

void say_last_words(const std::string& sentence) {
  say(base::join("retort: ", kError), sentence);
}

bool end_other_ranks(const std::string& why) noexcept try {
  auto* group = own_group.load();
  if (!group || group->size() == 1) return false;
  end_all(*group, why, false);
  return group->rank() != 0 || !group->job().abort_is_heard();
} catch (...) {  // without memory even this may fail
  return false;
}

base::ExitCode run_ranks(int ranks, const base::Path& run_directory) {
  const auto flights = record::RunFiles(run_directory).flights_path();
  const auto last_place = [&](int rank, int process) -> std::string {
    const auto record = comm::flight_of(flights, rank);
    return record && record->process == process ? comm::last_place(*record) : "";
  };
  const auto ends = comm::run_local_ranks(ranks, command_line(), last_place);
  const auto& first = ends.front();  // who speaks for all, where it can
  base::require<base::PeerError>(first.sentence.empty(), first.sentence);
  return static_cast<base::ExitCode>(first.code);
}

void require_same_on_all_ranks(comm::Group& group, const char* what, const std::string& text) {
  auto of_first = text;
  group.share(of_first);
  group.agree([&] {
    base::require<base::UsageError>(of_first == text, "rank ", group.rank(), ": ", what,
                                    " is another one than on rank 0; use the same on every machine.");
  });
}

base::ExitCode as_rank(comm::Group& group, Verbosity verbosity,
                       const std::function<base::ExitCode(record::Observer&)>& act) {
  catch_interrupts(group.rank() == 0);
  const OwnGroup own(group);
  if (group.rank() != 0) return act_silently(group, act);
  Console console(verbosity);
  return act_and_speak(group, console, act);
}

}  // namespace retort::cli
