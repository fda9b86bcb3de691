#pragma once
// What stands where a model, or a file of one, was expected: files and directories that other tools leave, by
// name and first bytes, each with what to do.

#include <string>
#include <string_view>

#include "retort/base/files.h"

namespace retort::io {

/// peft's, of an adapter; transformers with peft reads it beside a model too.
inline constexpr const char* kAdapterFile = "adapter_config.json";

/// What a directory without a model that can be read holds, or what a file is, with what to do: the rest of a
/// sentence about the path, without its full stop.  Empty where nothing is known of it.
std::string what_is_there(const base::Path& path);

/// Whether a text is what Git LFS leaves in the place of a file that was not fetched.
bool is_lfs_pointer(std::string_view first_bytes);
/// What to do about it.
inline constexpr const char* kFetchFromLfs =
    "fetch the file itself with git lfs pull in its folder, or with hf download";

/// Throws ModelError where the first bytes of `where` are known to be of something else than `expected`,
/// which is text ("JSON") or a safetensors file.
void refuse_other_format(std::string_view first_bytes, const std::string& where, const char* expected);

}  // namespace retort::io
