#pragma once
// A finished or stopped run for people: one self-contained HTML page, and the scores as a table for the
// terminal.

#include <string>

#include "retort/base/files.h"
#include "retort/base/json.h"

namespace retort::report {

/// The result of an evaluate stage as a text table of at most 110 columns; missing numbers are dashes.
std::string scores_table(const base::Json& evaluate_result);

/// What models of an evaluate stage came to on evaluation tasks, beside the teacher; empty without tasks.
std::string tasks_table(const base::Json& evaluate_result);

/// The result of `retort eval --tasks` as that of an evaluate stage, the teacher first.
base::Json as_evaluation(const base::Json& tasks_result);

/// What each model of an evaluate stage made of each prompt, a line each; empty when nothing was generated.
std::string generated_texts(const base::Json& evaluate_result);

/// What a run came to, in a line: the model that it ends with, against its teacher.  Empty where none was
/// evaluated.  Throws StorageError when there is no such directory.
std::string outcome(const base::Path& run_directory);

/// The page of a run directory.  It loads nothing, from the network or from disk; parts that the run does not
/// have are left out. Throws StorageError when there is no such directory.
std::string html_report(const base::Path& run_directory);

/// Writes html_report() to report.html in the run directory, whole or not at all.  Throws StorageError.
void write_report(const base::Path& run_directory);

}  // namespace retort::report
