#pragma once
// Blocks that differ, in config.json.  Retort writes a form of its own, under a name that no other program
// knows: a list with a number for each layer instead of one number.  It also reads per_layer_config, the form
// of transformers 5 and of Retort before: an object from the number of a layer to what is not as the keys at
// the top say.

#include <string>
#include <vector>

#include "retort/architecture/config.h"
#include "retort/base/json.h"

namespace retort::architecture {

/// The names of Retort's own form in config.json; base_model_type says whose mathematics it is.
inline constexpr const char* kOwnArchitecture = "RetortForCausalLM";
inline constexpr const char* kOwnModelType = "retort";
/// The file beside config.json with the code by which transformers loads this form.
inline constexpr const char* kModelingFile = "modeling_retort.py";
/// What config.json says of that code under auto_map; Retort itself never runs code of a model.
base::Json own_code();

/// Writes num_attention_heads, num_key_value_heads, head_dim and intermediate_size as lists, with 0 where a
/// block has no attention or no MLP.  Throws InternalError for experts.
void write_layers(const std::vector<Block>& blocks, base::Json& config);

/// Gives blocks the sizes that the lists of a configuration say, one number for each of them.  Throws
/// ModelError, `where` names the file.
void read_layers(const base::Json& config, std::vector<Block>& blocks, const std::string& where);

/// Changes the blocks that per_layer_config names: num_attention_heads, num_key_value_heads, head_dim,
/// intermediate_size, and skip, a list of "attention" and "mlp".  Throws ModelError, `where` names the file:
/// another key, a layer that does not exist, a value of another kind.
void apply_per_layer_config(const base::Json& value, std::vector<Block>& blocks, const std::string& where);

}  // namespace retort::architecture
