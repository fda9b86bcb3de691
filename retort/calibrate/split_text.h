#pragma once
// Calibration text in parts by whole documents, so that what a choice was made by does not judge it.

#include <set>
#include <string>
#include <vector>

#include "retort/base/json.h"
#include "retort/calibrate/text.h"

namespace retort::calibrate {

/// Each with the same sources, in the same order.
struct TextParts {
  std::vector<SourceText> fitted;    ///< what weights are fitted to
  std::vector<SourceText> choosing;  ///< what choices are made by
  std::vector<SourceText> judging;   ///< what only the reported numbers come from
  std::set<std::string> cut = {};    ///< sources with parts of one document on several sides
};

/// How large the parts of a text are, relative to each other; a part of 0 stays empty.
struct TextShares {
  double fitted = 6, choosing = 1, judging = 1;
};

/// In the order of the text each document goes to the part with the fewest tokens for its share, as long as
/// it is at most a quarter of its source; a longer one goes to the largest part.  Equal documents stay
/// together.  What was left of a sequence is a shorter sequence: documents do not see each other, so nothing
/// else changes. In a source with too few documents for a target in each part, a long book for example, what
/// each sequence has of a document counts as one.  Throws DataError naming a source where that is too little
/// too.
TextParts split_by_document(const std::vector<SourceText>& sources, const TextShares& shares = {});

/// {source: {"tokens", "documents"}}
base::Json describe(const std::vector<SourceText>& sources);
/// {source: {"fitted": {"tokens", "documents"}, "choosing": ..., "judging": ..., "whole_documents"}}
base::Json describe(const TextParts& text);

}  // namespace retort::calibrate
