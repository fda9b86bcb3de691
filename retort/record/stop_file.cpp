#include "retort/record/stop_file.h"

#include <filesystem>
#include <utility>

#include "retort/base/error.h"

namespace retort::record {

StopFile::StopFile(base::Path file, Observer& inner) : file_(std::move(file)), inner_(inner) {
  if (!std::filesystem::exists(file_)) return;
  std::error_code failed;
  base::require<base::StorageError>(std::filesystem::remove(file_, failed), file_.string(),
                                    ": cannot be removed: ", failed.message(), ".");
  inner_.message(Level::info, base::join(file_.string(), " asked the run before to stop; it was removed"));
}

bool StopFile::stop_requested() const {
  std::error_code none;
  return inner_.stop_requested() || std::filesystem::exists(file_, none);
}

}  // namespace retort::record
