#pragma once
// Documents that a run would both learn from and be measured on.

#include <cstdint>
#include <string>
#include <vector>

#include "retort/data/options.h"

namespace retort::data {

struct Overlap {
  std::string learned, measured;  ///< names of sources
  std::int64_t documents =
      0;  ///< of the training part of one with the text of a held-out document of the other
};

/// Pairs of sources with common documents.  Text is read only where the held-out rules do not exclude it
/// already: a source beside itself is safe with a fraction or with files, and so are two sources with the
/// same fraction.  Empty without reading, too, when the text to learn from has more than `most_bytes` as it
/// is stored.  Throws DataError and UsageError, as reading does.
std::vector<Overlap> overlaps(const std::vector<SourceOptions>& learned,
                              const std::vector<SourceOptions>& measured,
                              std::int64_t most_bytes = std::int64_t{1} << 30);

}  // namespace retort::data
