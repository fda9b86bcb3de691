#pragma once
// Calibration text as compensation takes it.

#include <vector>

#include "retort/calibrate/split_text.h"
#include "retort/compress/least_squares.h"

namespace retort::test {

/// Four fifths of the documents are fitted to, the others choose.  Lives as long as a reference to it does.
struct TextOfFit {
  calibrate::TextSplit split;
  operator compress::FitSources() const { return {split.fitted, split.choosing}; }
};

inline TextOfFit text_of_fit(const std::vector<calibrate::SourceText>& sources) {
  return {calibrate::split_by_document(sources, {.fitted = 4, .choosing = 1, .judging = 0})};
}

}  // namespace retort::test
