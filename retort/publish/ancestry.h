#pragma once
// The models that a model was made from, one after the other, as far as they are still there.

#include <optional>
#include <string>
#include <vector>

#include "retort/architecture/config.h"
#include "retort/base/files.h"

namespace retort::publish {

struct Ancestor {
  std::string name = {};               ///< of the stage that made it, or of its directory
  std::string kind = {};               ///< of that stage; empty for a model that Retort did not make
  std::string teacher = {};            ///< that it was trained to answer like; empty: none
  std::string pattern = {};            ///< in which its matrices are sparse; empty: they are not
  std::vector<std::string> data = {};  ///< names of the sources of that stage
  std::optional<architecture::Config> config = {};  ///< nothing where it is gone, or cannot be read
};

/// The model itself first; at most 32.  A retort.json that says nothing of it, or nothing sound, ends the
/// row.
std::vector<Ancestor> ancestry_of(const base::Path& model, const std::string& name);

/// What a model calls itself: `_name_or_path` of config.json, general.name of a GGUF file; empty without.
std::string own_name(const base::Path& model);

}  // namespace retort::publish
