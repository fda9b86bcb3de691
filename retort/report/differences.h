#pragma once
// What the page and the terminal say about a model beside its teacher.

#include <string>
#include <vector>

#include "retort/base/json.h"
#include "retort/report/numbers.h"

namespace retort::report {

/// Documents that a model of an evaluation was scored on, over all sources; empty when the evaluation does
/// not tell.
Number documents(const base::Json& model);

struct Difference {
  std::string value;     ///< "+0.0123"
  std::string interval;  ///< "+0.0101 to +0.0147", or why there is none
};
/// Mean NLL of a model above its teacher's; dashes for the teacher itself and where there is none.
Difference nll_difference(const base::Json& model, bool is_teacher);

/// What a 95 % interval over documents does not promise; benchmarks/intervals has the figures.
inline constexpr const char* kLimitsOfIntervals =
    "Where a few documents lose far more than the others, up to two of ten such intervals end below the "
    "truth.";

/// What is said of a model beside its scores.
struct ModelNote {
  std::string model, text;
};
/// One for each model of an evaluation whose file is quantised.
std::vector<ModelNote> dequantised_notes(const base::Json& evaluation);

}  // namespace retort::report
