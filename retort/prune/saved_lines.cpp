#include "retort/prune/saved_lines.h"

#include <sstream>
#include <utility>

#include "retort/base/error.h"

namespace retort::prune {

SavedLines::SavedLines(base::Path path, const std::string& fingerprint) : path_(std::move(path)) {
  base::make_directories(path_.parent_path());
  if (std::filesystem::exists(path_)) read(fingerprint);
  // Written again as a whole, so that half a line of the last run is gone.
  std::string text = base::Json{{"search", fingerprint}}.dump() + "\n";
  for (const auto& line : earlier_) text += line.dump() + "\n";
  base::write_file_atomically(path_, text);
  out_.open(path_, std::ios::binary | std::ios::app);
  base::require<base::StorageError>(out_.is_open(), path_.string(), ": cannot be opened for writing.");
}

void SavedLines::read(const std::string& fingerprint) {
  std::istringstream lines(base::read_file(path_));
  std::string line;
  try {
    if (!std::getline(lines, line) || base::Json::parse(line).value("search", "") != fingerprint) return;
    while (std::getline(lines, line)) earlier_.push_back(base::Json::parse(line));
  } catch (const base::Json::exception&) {
    return;  // the rest was not written completely
  }
}

void SavedLines::append(const base::Json& line) {
  out_ << line.dump() << '\n' << std::flush;
  base::require<base::StorageError>(
      out_.good(), path_.string(), ": cannot be written; free some space and start again, nothing was lost.");
}

}  // namespace retort::prune
