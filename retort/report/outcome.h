#pragma once
// What a run came to: the model at the end of its chain, against the teacher.

#include <string>

#include "retort/report/sections.h"

namespace retort::report {

/// One sentence as of a table, for the page and for the terminal.
struct Outcome {
  std::string model;     ///< its label
  std::string sentence;  ///< begins behind the label: ", the model that the run ends with, has ..."
};

/// From the last evaluate stage: the model that no other stage starts from, of several those with a teacher,
/// of these the best.  Both are empty where nothing was evaluated beside a teacher.
Outcome outcome_of(const Run& run);

}  // namespace retort::report
