#pragma once
// Which files stand in a model directory that Retort wrote.

#include <string_view>

namespace retort::io {

/// Whether Retort writes a file or folder of this name into a model directory.
bool is_name_of_model_file(std::string_view name);

}  // namespace retort::io
