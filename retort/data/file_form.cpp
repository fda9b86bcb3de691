#include "retort/data/file_form.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>

#include "retort/base/error.h"
#include "retort/base/json.h"
#include "retort/base/regular_file.h"
#include "retort/data/json_line.h"
#include "retort/data/parquet_records.h"
#include "retort/data/records.h"
#include "retort/data/source_files.h"
#include "retort/data/utf8_text.h"
#include "retort/io/compressed.h"
#include "retort/io/recognise.h"
#include "retort/io/text_file.h"
#include "retort/parquet/table.h"

namespace retort::data {
namespace {

using base::DataError;
using base::require;

// Without the suffix of a compression.
std::string extension_of(const base::Path& path) {
  const std::string extension = path.extension().string();
  const bool compressed = extension == ".gz" || extension == ".zst";
  return compressed ? path.stem().extension().string() : extension;
}

std::string first_bytes(const base::Path& path) {
  io::ByteReader reader(path);
  std::string bytes(io::kTextProbeBytes, '\0');
  std::size_t size = 0;
  for (std::size_t count = 1; count > 0 && size < bytes.size(); size += count)
    count = reader.read({bytes.data() + size, bytes.size() - size});
  bytes.resize(size);
  return bytes;
}

std::string_view without_blanks(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(kWhiteSpace), text.size()));
  return text;
}

bool is_object(std::string_view line) {
  try {
    return read_json_line(line, "").root.is_object();
  } catch (const base::JsonFault&) {
    return false;
  }
}

// Whether the first `wanted` lines that are not blank are objects.
bool begins_with_objects(const base::Path& path, int wanted) {
  io::LineReader lines(path, kMaxDocumentBytes);
  for (std::string line; wanted > 0 && lines.next(line);) {
    std::string_view text = line;
    if (lines.line_number() == 1 && text.starts_with(kByteOrderMark))
      text.remove_prefix(kByteOrderMark.size());
    text = without_blanks(text);
    if (text.empty()) continue;
    if (text.front() != '{' || !is_object(text)) return false;
    --wanted;
  }
  return wanted == 0;
}

// {"key": or [{"
bool begins_as_json(std::string_view text) {
  const bool array = text.starts_with('[');
  if (array) text = without_blanks(text.substr(1));
  if (!text.starts_with('{')) return false;
  text = without_blanks(text.substr(1));
  if (!text.starts_with('"')) return false;
  const auto end = text.find_first_of("\"\\\n", 1);
  return end != text.npos && text[end] == '"' && without_blanks(text.substr(end + 1)).starts_with(':');
}

void check_file(const SourceOptions& source, const base::Path& path) {
  std::error_code ignored;
  const FileForm form = form_of(source, path);
  if (form == FileForm::parquet && !source.chat) (void)open_parquet(source, path);
  if (form == FileForm::parquet && source.chat) (void)open_parquet_chats(source, path);
  if (form == FileForm::text && source.chat) (void)open_records(source, path);
  if (form != FileForm::text || source.skip_bad_lines || !std::filesystem::is_regular_file(path, ignored))
    return;
  const auto bytes = first_bytes(path);
  require_utf8_at_first(path, bytes, bytes.size() < io::kTextProbeBytes);
}

[[noreturn]] void refuse_json(const base::Path& path, std::string_view text) {
  const char* what = text.starts_with('[')   ? "one JSON array"
                     : text.starts_with('{') ? "one JSON object"
                                             : "text that is no JSON";
  throw DataError(base::join(path.string(), ": expected text or JSON lines, found ", what,
                             "; write an object on a line for each document and name the file .jsonl."));
}

}  // namespace

bool is_parquet(const base::Path& path) {
  std::error_code ignored;
  if (path.extension() == ".parquet") return true;
  if (!std::filesystem::is_regular_file(path, ignored)) return false;
  std::array<char, parquet::kMagic.size()> first{};
  std::ifstream(path, std::ios::binary).read(first.data(), first.size());
  return std::string_view(first.data(), first.size()) == parquet::kMagic;
}

FileForm form_of(const SourceOptions& source, const base::Path& path) {
  const std::string extension = extension_of(path);
  const bool jsonl = extension == ".jsonl" || extension == ".ndjson";
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored))
    return is_parquet(path) ? FileForm::parquet : jsonl ? FileForm::jsonl : FileForm::text;
  const std::string bytes = first_bytes(path);
  require<DataError>(!io::is_lfs_pointer(bytes), path.string(), ": expected text, found a Git LFS pointer; ",
                     io::kFetchFromLfs, ".");
  if (is_parquet(path)) return FileForm::parquet;
  // A NUL byte in JSONL is a bad line, which a recipe may skip.
  const std::string binary = jsonl ? io::binary_format(bytes) : io::why_not_text(bytes);
  require<DataError>(binary.empty(), path.string(), ": expected text, found ", binary,
                     "; convert it to UTF-8 text (.txt) or JSON lines (.jsonl).");
  if (jsonl) return FileForm::jsonl;
  std::string_view text = bytes;
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  text = without_blanks(text);
  const bool json = extension == ".json" && !text.empty();
  if (text.starts_with('{') && begins_with_objects(path, json ? 1 : 2)) return FileForm::jsonl;
  if (json || (source.separator.empty() && begins_as_json(text))) refuse_json(path, text);
  return FileForm::text;
}

void check_files(const SourceOptions& source) {
  for (const auto* paths : {&source.paths, &source.held_out.paths}) {
    if (paths->empty() && paths != &source.paths) continue;
    for (const auto& file : expand_paths(source.name, *paths)) {
      const auto why = base::why_no_file(file);
      require<DataError>(why.empty(), "source '", source.name, "': ", file.string(), " ", why,
                         "; a run reads its text more than once.");
      check_file(source, file);
    }
  }
}

}  // namespace retort::data
