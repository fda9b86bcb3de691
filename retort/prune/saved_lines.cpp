#include "retort/prune/saved_lines.h"

#include <fstream>
#include <limits>
#include <utility>

#include "retort/base/error.h"

namespace retort::prune {
namespace {

std::string first_line(const std::string& fingerprint) {
  return base::Json{{"search", fingerprint}}.dump();
}

}  // namespace

double number_or_infinity(const base::Json& json) {
  return json.is_null() ? std::numeric_limits<double>::infinity() : json.get<double>();
}

SavedLines::SavedLines(base::Path path, const std::string& fingerprint, record::Observer& observer)
    : path_(std::move(path)) {
  if (path_.empty()) return;
  base::make_directories(path_.parent_path());
  if (std::filesystem::exists(path_)) read(fingerprint, observer);
  // Written again as a whole, so that half a line of the last run is gone.
  std::string text = first_line(fingerprint) + "\n";
  for (const auto& line : earlier_) text += line.dump() + "\n";
  base::write_file_atomically(path_, text);
  file_.emplace(path_);
}

void SavedLines::read(const std::string& fingerprint, record::Observer& observer) {
  const auto warn = [&](const auto&... text) {
    observer.message(record::Level::warning, base::join("prune: ", path_.string(), text...));
  };
  auto lines = base::open_file(path_);
  std::string line;
  std::getline(lines, line);
  if (line != first_line(fingerprint))
    return warn(
        " holds what was measured of another model, on other text or for another f; all is measured anew.");
  while (std::getline(lines, line)) {
    auto json = base::Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!json.is_discarded())
      earlier_.push_back(std::move(json));
    else if (!lines.eof())  // the last line may have been cut short by a crash
      warn(": line ", earlier_.size() + 2, " is damaged and left out; what it said is measured anew.");
  }
  base::require_was_read(lines, path_);
}

void SavedLines::append(const base::Json& line) {
  if (!file_) return;
  const int code = file_->append(line.dump());
  base::require<base::StorageError>(code == 0, path_.string(),
                                    ": writing failed: ", base::system_message(code),
                                    "; free some space and start again, nothing was lost.");
}

}  // namespace retort::prune
