#pragma once
// Calibration text on three sides by whole documents, so that what a choice was made by does not judge it.

#include <set>
#include <string>
#include <vector>

#include "retort/base/json.h"
#include "retort/calibrate/text.h"

namespace retort::calibrate {

/// Each with the same sources, in the same order.
struct TextSplit {
  std::vector<SourceText> fitted;    ///< what weights are fitted to
  std::vector<SourceText> choosing;  ///< what choices are made by
  std::vector<SourceText> judging;   ///< what only the reported numbers come from
  std::set<std::string> cut = {};    ///< sources with parts of one document on several sides
};

/// How large the sides of a text are, relative to each other; a side of 0 stays empty.
struct TextShares {
  double fitted = 6, choosing = 1, judging = 1;
};

/// In the order of the text each document goes to the side with the fewest tokens for its share, as long as
/// it is at most a quarter of its source; a longer one goes to the largest side.  Equal documents stay
/// together.  What was left of a sequence is a shorter sequence: documents do not see each other, so nothing
/// else changes. In a source with too few documents for a target on each side, a long book for example, what
/// each sequence has of a document counts as one.  Throws DataError naming a source where that is too little
/// too.
TextSplit split_by_document(const std::vector<SourceText>& sources, const TextShares& shares = {});

/// A sentence for each source that was cut; `stage` speaks, `looks_better` is what does.
std::vector<std::string> warnings_of_cut(const TextSplit& text, const char* stage, const char* looks_better);

/// {source: {"tokens", "documents"}}
base::Json describe(const std::vector<SourceText>& sources);
/// {source: {"fitted": {"tokens", "documents"}, "choosing": ..., "judging": ..., "whole_documents"}}
base::Json describe(const TextSplit& text);

}  // namespace retort::calibrate
