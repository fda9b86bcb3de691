#include "cli/ranks.h"

#include <iostream>

#include "cli/interrupt.h"
#include "retort/base/error.h"
#include "retort/comm/flight.h"
#include "retort/comm/shared/local_ranks.h"
#include "retort/record/run_files.h"

namespace retort::cli {
namespace {

class Silent final : public record::Observer {
 public:
  bool stop_requested() const override { return interrupted(); }
};

// Where the others do not hear why, all are ended, so it is said here.
void end_all(comm::Group& group, const std::string& what, bool by_another) {
  if (group.failed_together()) return;
  group.note_failure(what, by_another);
  const auto sentence = by_another ? what : base::join("rank ", group.rank(), ": ", what);
  if (!group.abort_is_heard()) say_last_words(sentence);
  group.abort(sentence);
}

base::ExitCode act_silently(comm::Group& group, const std::function<base::ExitCode(record::Observer&)>& act) {
  Silent observer;
  const auto failed = [&](base::ExitCode code, const char* what) {
    end_all(group, what, code == base::ExitCode::temporary);
    return code;
  };
  try {
    return act(observer);
  } catch (const base::Error& error) {
    return failed(error.code(), error.what());
  } catch (const std::exception& error) {
    return failed(base::ExitCode::internal, error.what());
  }
}

}  // namespace

void say_last_words(const std::string& sentence) {
  std::cerr << "error: " << sentence << std::endl;
}

base::ExitCode run_ranks(int ranks, const base::Path& run_directory) {
  const auto flights = record::RunFiles(run_directory).flights_path();
  const auto last_place = [&](int rank, int process) -> std::string {
    try {
      for (const auto& record : comm::read_flights(flights))
        if (record.rank == rank && record.process == process) return comm::last_place(record);
    } catch (const std::exception&) {  // a rank that begins may be making the records anew
    }
    return {};
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
  if (group.rank() != 0) return act_silently(group, act);
  Console console(verbosity);
  try {
    return act(console);
  } catch (const base::PeerError& error) {
    end_all(group, error.what(), true);
    throw;
  } catch (const std::exception& error) {
    end_all(group, error.what(), false);
    throw;
  }
}

}  // namespace retort::cli
