#pragma once
// Rotary embeddings in config.json, as rope_parameters of transformers 5 and rope_scaling of 4.

#include <vector>

#include "retort/architecture/family.h"
#include "retort/architecture/json_reader.h"

namespace retort::architecture {

/// Those of full attention and, where a family tells them apart, of a window.  Throws ModelError: a kind, a
/// key or a value that is not honoured, or two places that contradict each other.
std::vector<Rope> read_ropes(const JsonReader& in, const Family& family, std::int64_t context);

/// Both spellings.
void write_ropes(const std::vector<Rope>& ropes, const Family& family, base::Json& config);

/// Keys at the top of config.json that belong to a rotary embedding.
bool is_rope_key(std::string_view key);

}  // namespace retort::architecture
