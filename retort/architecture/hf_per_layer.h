#pragma once
// The key per_layer_config of config.json, in which transformers 5 describes layers that differ: an object
// from the number of a layer to what is not as the keys at the top say.  transformers reads and keeps it;
// whether a program builds such a model is another matter (see docs/formats/model-directory.md).

#include <string>
#include <vector>

#include "retort/architecture/config.h"
#include "retort/base/json.h"

namespace retort::architecture {

/// Changes the blocks that `value` names: num_attention_heads, num_key_value_heads, head_dim,
/// intermediate_size, and skip, a list of "attention" and "mlp".  Throws ModelError, `where` names the file:
/// another key, a layer that does not exist, a value of another kind.
void apply_per_layer_config(const base::Json& value, std::vector<Block>& blocks, const std::string& where);

/// The block that most layers are like, with attention and an MLP: what the keys at the top describe.  The
/// width is the largest of all, so that a program that only reads the top reserves enough.  Throws
/// InternalError when no block has attention, no block has a dense MLP, or one has experts.
Block common_block(const std::vector<Block>& blocks);

/// What differs from `common`; an empty object when nothing does.
base::Json per_layer_config(const std::vector<Block>& blocks, const Block& common);

}  // namespace retort::architecture
