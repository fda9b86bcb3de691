#pragma once
// Tensors under the names that they have in a model of text alone, whatever a file puts before these.

#include <memory>
#include <string>
#include <vector>

#include "retort/io/weight_files.h"

namespace retort::io {

/// Of a model that also sees or hears: tensors of transformers 4 (language_model.model.*,
/// language_model.lm_head.*) and 5 (model.language_model.*) without these prefixes; those of other parts are
/// unread. Files without such names stay as they are.
std::unique_ptr<const WeightFiles> language_part(std::unique_ptr<const WeightFiles> whole);

/// As transformers reads them: "model.model.norm.weight" and "norm.weight" are "model.norm.weight", and where
/// the model `may_be_tied` a head without an embedding is the embedding.  `where` names the files in a
/// sentence about this that is added to `notes`.  Files with other names stay as they are.
std::unique_ptr<const WeightFiles> with_usual_names(std::unique_ptr<const WeightFiles> files,
                                                    bool may_be_tied, const std::string& where,
                                                    std::vector<std::string>& notes);

}  // namespace retort::io
