#pragma once
// A decoder in words: what it computes beside its sizes, and what of it pruning may remove.

#include <string>
#include <utility>
#include <vector>

#include "retort/architecture/config.h"

namespace retort::architecture {

/// Short phrases such as {"attention", "biases of q, k and v; window of 4096 tokens in 3 of 4 layers"}.
std::vector<std::pair<std::string, std::string>> described(const Config& config);

/// Why KV groups may not be removed from each block on its own; empty where they may.
std::string why_heads_stay(const Config& config);
/// Why they may not be removed from all blocks alike, or hidden features, so that a class of transformers
/// takes the result; empty where they may.
std::string why_heads_stay_alike(const Config& config);
std::string why_hidden_stays(const Config& config);

/// All families as text: which models they are, and what pruning has to leave.
std::string families_text();

/// Their keys of config.json: what an absent key means, what no key tells of, and which values a family
/// without the key accepts.
std::string family_keys_text();

}  // namespace retort::architecture
