#pragma once
// The code by which transformers loads a model whose blocks differ.

#include <string_view>

namespace retort::model {

/// The text of modeling_retort.py, which stands beside such a model's config.json.
extern const std::string_view kModelingScript;

}  // namespace retort::model
