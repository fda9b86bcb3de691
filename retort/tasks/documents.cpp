#include "retort/tasks/documents.h"

#include <algorithm>
#include <array>
#include <optional>

#include "retort/base/error.h"
#include "retort/data/source_files.h"
#include "retort/io/compressed.h"
#include "retort/io/quote.h"
#include "retort/tasks/unify.h"

namespace retort::tasks {
namespace {

using base::DataError;
using base::Json;
using base::Path;
using base::require;

constexpr std::size_t kMostRowBytes = std::size_t{64} << 20;
constexpr std::size_t kMostFileBytes = std::size_t{1} << 30;
constexpr std::size_t kMostRows = 10'000'000;

bool has_suffix(const Path& file, std::string_view suffix) {
  const auto name = file.filename().string();
  return name.ends_with(suffix) || name.ends_with(std::string(suffix) + ".gz") ||
         name.ends_with(std::string(suffix) + ".zst");
}

void add_row(std::vector<Json>& rows, Json row, const std::string& where) {
  require<DataError>(row.is_object(), where, ": expected an object of fields, found ", io::shown(row), ".");
  require<DataError>(rows.size() < kMostRows, where, ": more than ", kMostRows, " documents.");
  rows.push_back(std::move(row));
}

void read_lines(const Path& file, std::vector<Json>& rows) {
  io::LineReader reader(file, kMostRowBytes);
  std::string line;
  while (reader.next(line)) {
    if (line.find_first_not_of(" \t\r") == line.npos) continue;
    const auto where = base::join(file.string(), ":", reader.line_number());
    try {
      add_row(rows, base::parse_json(line, {.max_bytes = kMostRowBytes}), where);
    } catch (const base::JsonFault& fault) {
      throw DataError(base::join(where, ": is no JSON at byte ", fault.byte, ": ", fault.reason, "."));
    }
  }
}

std::string whole_text(const Path& file) {
  io::ByteReader reader(file);
  std::string text;
  std::array<char, 65536> buffer;
  while (const auto count = reader.read(buffer)) {
    require<DataError>(text.size() + count <= kMostFileBytes, file.string(), ": more than ", kMostFileBytes,
                       " bytes in one list; write a document a line, as .jsonl.");
    text.append(buffer.data(), count);
  }
  return text;
}

// A list of documents; what does not begin with a bracket is lines, as datasets reads it.
void read_list(const Path& file, std::vector<Json>& rows) {
  const std::string text = whole_text(file);
  const auto begin = text.find_first_not_of(" \t\r\n");
  if (begin == text.npos || text[begin] != '[') return read_lines(file, rows);
  try {
    Json list = base::parse_json(text, {.max_bytes = kMostFileBytes, .max_values = std::size_t{1} << 26});
    for (std::size_t i = 0; i < list.size(); ++i)
      add_row(rows, std::move(list[i]), base::join(file.string(), ": document ", i));
  } catch (const base::JsonFault& fault) {
    throw DataError(base::join(file.string(), ": is no JSON at byte ", fault.byte, ": ", fault.reason, "."));
  }
}

void read_file(const Path& file, const DataOptions& options, std::vector<Json>& rows) {
  if (has_suffix(file, ".parquet")) {
    require<DataError>(static_cast<bool>(options.read_parquet), file.string(),
                       ": this build reads no Parquet; write its rows as .jsonl.");
    options.read_parquet(file, [&](Json row) { add_row(rows, std::move(row), file.string()); });
  } else if (has_suffix(file, ".json")) {
    read_list(file, rows);
  } else {
    read_lines(file, rows);
  }
}

// Whether a file's name says that it has this split: "test.jsonl", "test-00000-of-00001.parquet".
bool is_of_split(const Path& file, const std::string& split) {
  const auto name = file.filename().string();
  const bool known = has_suffix(file, ".parquet") || has_suffix(file, ".jsonl") || has_suffix(file, ".json");
  if (!known || !name.starts_with(split) || name.size() <= split.size()) return false;
  return name[split.size()] == '.' || name[split.size()] == '-';
}

std::vector<Path> files_in(const Path& folder, const std::string& split) {
  std::vector<Path> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error))
    if (is_of_split(entry.path(), split) && !entry.is_directory(error)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  // Of several forms of the same rows one is read.
  for (const char* suffix : {".parquet", ".jsonl", ".json"})
    if (std::any_of(files.begin(), files.end(), [&](const Path& file) { return has_suffix(file, suffix); })) {
      std::erase_if(files, [&](const Path& file) { return !has_suffix(file, suffix); });
      break;
    }
  return files;
}

// Folders of a snapshot in which the files of a configuration may lie, the likeliest first.
std::vector<Path> folders_of(const DataSource& data, const Path& directory) {
  const auto slash = data.path.rfind('/');
  std::vector<Path> folders;
  for (const Path& root : {directory / data.path, directory / data.path.substr(slash + 1), directory}) {
    if (data.name) folders.insert(folders.end(), {root / *data.name, root / "data" / *data.name});
    folders.push_back(root / "data");
    folders.push_back(root);
  }
  return folders;
}

std::vector<Path> given_files(const Task& task, const std::string& split) {
  const auto& files = task.data.files;
  const auto found =
      std::find_if(files.begin(), files.end(), [&](const auto& one) { return one.first == split; });
  std::string known;
  for (const auto& one : files) known += (known.empty() ? "" : ", ") + one.first;
  require<DataError>(found != files.end(), task.name, ": data_files has no split ", io::quote(split),
                     known.empty() ? "" : ", it has " + known, "; add it to ", task.file.string(), ".");
  std::vector<std::string> patterns;
  for (const auto& name : found->second)
    patterns.push_back(Path(name).is_absolute() ? name : (task.data.directory / name).string());
  return data::expand_paths(task.name + ": split " + split, patterns);
}

std::vector<Json> pool_of(const Task& task, const DataOptions& options, const Documents& evaluated) {
  const auto rows_of = [&](const std::string& split) {
    return split == task.evaluated_split() ? evaluated.rows : read_split(task, split, options).rows;
  };
  if (task.fewshot.split) return rows_of(*task.fewshot.split);
  if (task.fewshot.samples) return *task.fewshot.samples;
  if (task.training_split) return rows_of(*task.training_split);
  if (task.validation_split) return rows_of(*task.validation_split);
  return evaluated.rows;
}

}  // namespace

std::vector<Path> files_of(const Task& task, const std::string& split, const DataOptions& options) {
  const auto& path = task.data.path;
  if (path == "json" || path == "parquet" || !task.data.files.empty()) return given_files(task, split);
  require<DataError>(!options.directory.empty(), task.name, ": needs the data set ", io::quote(path),
                     ", which Retort does not download; give the folder of its snapshot by --data.");
  for (const auto& folder : folders_of(task.data, options.directory))
    if (auto files = files_in(folder, split); !files.empty()) return files;
  throw DataError(
      base::join(task.name, ": found no files of the split ", io::quote(split), " of ", io::quote(path),
                 task.data.name ? ", configuration " + io::quote(*task.data.name) : "", " in ",
                 options.directory.string(), "; put ", split, "-*.parquet or ", split, ".jsonl there."));
}

Documents read_split(const Task& task, const std::string& split, const DataOptions& options) {
  Documents documents;
  documents.files = files_of(task, split, options);
  for (const auto& file : documents.files) read_file(file, options, documents.rows);
  require<DataError>(!documents.rows.empty(), documents.files.front().string(), ": the split ",
                     io::quote(split), " of ", task.name, " has no documents; give it one.");
  documents.features = unify(documents.rows);
  return documents;
}

TaskDocuments read_documents(const Task& task, const DataOptions& options) {
  TaskDocuments documents;
  documents.evaluated = read_split(task, task.evaluated_split(), options);
  if (task.shots() == 0) return documents;
  documents.fewshot = pool_of(task, options, documents.evaluated);
  documents.has_pool = true;
  return documents;
}

}  // namespace retort::tasks
