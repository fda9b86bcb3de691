#pragma once
// Documents that a run would both use, to learn or to choose by, and be measured on.

#include <cstdint>
#include <string>
#include <vector>

#include "retort/data/document_reader.h"
#include "retort/data/options.h"

namespace retort::data {

struct Overlap {
  std::string used, measured;  ///< names of sources
  std::int64_t documents = 0;  ///< held-out documents of the other that are found in the used part of one
};

struct Overlaps {
  std::vector<Overlap> found;
  std::vector<std::string> unread;  ///< used sources that would have to be read, and are too long for it
};

/// Pairs of sources with common text, as held_out_texts.h finds it; `part`: of the used sources.  Text to
/// learn from is read only where the held-out rules do not exclude it already: a source beside itself is safe
/// with a fraction or with files, and so are two sources that are cut alike and have the same fraction.  It
/// is not read either when the used sources together have more than `most_bytes` as they are stored.  Throws
/// DataError and UsageError, as reading does.
Overlaps overlaps(const std::vector<SourceOptions>& used, Split part,
                  const std::vector<SourceOptions>& measured,
                  std::int64_t most_bytes = std::int64_t{1} << 30);

/// Documents that are measured and are no part of a source, such as the questions of a task.
struct MeasuredTexts {
  std::string name;
  std::vector<std::string> texts;
};
/// The same of such documents, in the part of the used sources that is learned from.
Overlaps overlaps(const std::vector<SourceOptions>& used, const std::vector<MeasuredTexts>& measured,
                  std::int64_t most_bytes = std::int64_t{1} << 30);

}  // namespace retort::data
