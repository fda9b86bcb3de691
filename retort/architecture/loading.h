#pragma once
// Which programs load a model that Retort writes, and which do not.

#include <string>

#include "retort/architecture/config.h"

namespace retort::architecture {

/// In a line without a full stop: who loads a model that is written from this configuration, who does not and
/// why.  What nobody tried is called so; docs/formats/model-directory.md says what was.
std::string where_it_loads(const Config& config);

/// The same of what a stage is to make of a model: `alike`: with all blocks of one size.
std::string where_it_will_load(const Config& input, bool alike);

}  // namespace retort::architecture
