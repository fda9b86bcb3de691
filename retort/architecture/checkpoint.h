#pragma once
// Does a model directory hold exactly the tensors that its configuration asks for?

#include <string>
#include <vector>

#include "retort/architecture/config.h"
#include "retort/io/dtype.h"
#include "retort/io/model_directory.h"

namespace retort::architecture {

/// Checks names, shapes and dtypes (f32, f16, bf16), and that a head beside a tied embedding has its values;
/// throws ModelError for the first that is wrong.
void check_tensors(const Config& config, const io::ModelDirectory& directory);

/// What of the files is not read because the model computes the same without it.
io::UnreadTensors unread_tensors(const Config& config, const io::ModelDirectory& directory);
/// A sentence for each reason of it, and what else the directory holds that is not read as it stands there.
std::vector<std::string> notes_on_files(const Config& config, const io::ModelDirectory& directory);

/// Whether a file has a head of its own, with other values than the embedding.
bool has_own_head(const io::ModelDirectory& directory);

/// The dtype that a checked model is saved in: that of its weights where they are alike, else what
/// config.json says, else that of most values.  Adds a sentence to `notes` where weights differ from it or
/// config.json does.
io::Dtype weight_dtype(const Config& config, const io::ModelDirectory& directory,
                       std::vector<std::string>* notes = nullptr);

}  // namespace retort::architecture
