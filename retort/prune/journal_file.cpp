#include "retort/prune/journal_file.h"

#include <sstream>
#include <utility>

#include "retort/base/error.h"
#include "retort/base/json.h"

namespace retort::prune {
namespace {

using Entry = search::Journal::Entry;

base::Json to_json(const Entry& entry) {
  return {{"state", entry.state},
          {"rung", entry.rung},
          {"objective", entry.objective},
          {"charge", entry.charge},
          {"pieces", entry.pieces}};
}

Entry entry_from_json(const base::Json& json) {
  return {json.at("state").get<search::State>(), json.at("rung").get<std::int32_t>(),
          json.at("objective").get<double>(), json.at("charge").get<double>(),
          json.at("pieces").get<std::vector<double>>()};
}

}  // namespace

JournalFile::JournalFile(base::Path path, const std::string& fingerprint) : path_(std::move(path)) {
  base::make_directories(path_.parent_path());
  if (std::filesystem::exists(path_)) read(fingerprint);
  // Written again as a whole, so that half a line of the last run is gone.
  std::string text = base::Json{{"search", fingerprint}}.dump() + "\n";
  for (const auto& entry : earlier_) text += to_json(entry).dump() + "\n";
  base::write_file_atomically(path_, text);
  out_.open(path_, std::ios::binary | std::ios::app);
  base::require<base::StorageError>(out_.is_open(), path_.string(), ": cannot be opened for writing.");
}

void JournalFile::read(const std::string& fingerprint) {
  std::istringstream lines(base::read_file(path_));
  std::string line;
  try {
    if (!std::getline(lines, line) || base::Json::parse(line).value("search", "") != fingerprint) return;
    while (std::getline(lines, line)) earlier_.push_back(entry_from_json(base::Json::parse(line)));
  } catch (const base::Json::exception&) {
    return;  // the rest was not written completely
  }
}

void JournalFile::append(const Entry& entry) {
  out_ << to_json(entry).dump() << '\n' << std::flush;
  base::require<base::StorageError>(
      out_.good(), path_.string(), ": cannot be written; free some space and start again, nothing was lost.");
}

}  // namespace retort::prune
