#pragma once
// A command that several ranks carry out together: one of them speaks.

#include <functional>

#include "cli/command.h"
#include "cli/console.h"
#include "retort/base/files.h"
#include "retort/comm/group.h"

namespace retort::cli {

/// Says why this process is ended by another of its threads.
void say_last_words(const std::string& sentence);

/// Ends the others where this process is a rank and can do nothing more itself.  Whether `why` is said then.
bool end_other_ranks(const std::string& why) noexcept;

/// Starts this command on `ranks` processes and waits for them; returns how the job ended, after a sentence
/// where nobody else can say one.  They note in `run_directory` where they are.
base::ExitCode run_ranks(int ranks, const base::Path& run_directory);

/// Throws UsageError on every rank where `text` is not the same everywhere; it describes `what`.  Collective.
void require_same_on_all_ranks(comm::Group& group, const char* what, const std::string& text);

/// Carries out `act` as one rank of a group.  Rank 0 talks to the user; another one is silent, and when it
/// fails alone its sentence ends the work of all.
base::ExitCode as_rank(comm::Group& group, Verbosity verbosity,
                       const std::function<base::ExitCode(record::Observer&)>& act);

}  // namespace retort::cli
