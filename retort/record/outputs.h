#pragma once
// What a finished stage left in its run, and whether it is still there as it was.

#include <string>
#include <string_view>

#include "retort/base/json.h"
#include "retort/record/keys.h"
#include "retort/record/run_files.h"

namespace retort::record {

/// Where a stage's result has what describe_outputs() returns.
inline constexpr Key kOutputFiles{"output_files"};

/// Whether a result is as it was written, as far as that is known: earlier versions wrote neither outputs nor
/// checksum.
bool is_sound_result(const base::Json& result);

/// {path within the run: {"bytes", "modified_nanoseconds", "inode", "xxh128"}} of each file that the stage
/// left: its model, the files of its folder and its lines by document.  Reads all of them.  Throws
/// StorageError.
base::Json describe_outputs(const RunFiles& run, std::string_view stage);

/// How closely a file is looked at: its contents always, or only where size, time or inode are other ones.
enum class Look { contents, contents_where_times_differ };

/// What is wrong with the outputs of a finished stage, such as "models/born/config.json is gone"; empty:
/// nothing. Of a result that an earlier version wrote, or that is damaged, only whether the model is there is
/// known.  Throws StorageError where a file cannot be read.
std::string wrong_with_outputs(const RunFiles& run, std::string_view stage, Look look);

}  // namespace retort::record
