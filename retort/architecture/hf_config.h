#pragma once
// config.json of Hugging Face, in the spellings of transformers 4 and 5.  A key that changes the mathematics
// and is not honoured is refused by name; a key that is not known is reported as a note.

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "retort/architecture/config.h"
#include "retort/base/files.h"
#include "retort/base/json.h"
#include "retort/io/dtype.h"

namespace retort::architecture {

/// Parses and validates a config.json; `where` names it in messages.  Keys that are not known are added to
/// `notes`, a sentence each.  Throws ModelError.
Config parse_hf_config(std::string_view json_text, const std::string& where,
                       std::vector<std::string>* notes = nullptr);

/// Reads config.json of a model directory, or what stands for it in a GGUF file.  A model that is tied by
/// config.json and has a head with values of its own is untied.  Throws ModelError or StorageError.
Config read_config(const base::Path& directory, std::vector<std::string>* notes = nullptr);

/// What config.json holds beside the decoder.
struct HfExtras {
  io::Dtype dtype = io::Dtype::bf16;  ///< of the saved weights
  base::Json additional;  ///< an object of further keys, for example where the model comes from; may be null
};

/// The text of config.json.  Blocks that are alike are written for transformers 4 and 5, in the name of the
/// family that can say them (families.h); blocks that differ in Retort's own form (hf_layers.h).  Throws
/// ModelError for an architecture that is not in the table, InternalError for experts.
std::string hf_config_json(const Config& config, const HfExtras& extras = {});

}  // namespace retort::architecture
