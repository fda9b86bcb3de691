#include "retort/publish/certificate.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>

#include "retort/base/error.h"
#include "retort/base/hash.h"
#include "retort/base/printable.h"

namespace retort::publish {
namespace {

namespace fs = std::filesystem;
using base::Json;
using base::require;
using base::ValidationError;

constexpr std::size_t kMaxBytes = std::size_t{1} << 24;

const Json& member(const Json& object, const char* key) {
  static const Json kNull;
  return object.is_object() && object.contains(key) ? object.at(key) : kNull;
}

// Of this format, as far as it is read.
bool is_certificate(const Json& json) {
  const Json &files = member(json, "files"), &recorded = member(json, "recorded"),
             &model = member(json, "model");
  const bool of_format =
      member(json, "format") == kCertificateFormat && files.is_object() && model.is_string();
  return of_format && (model == "." || files.contains(model.get<std::string>())) &&
         member(member(json, "source"), "directory").is_string() && member(recorded, "ids").is_array() &&
         member(recorded, "perplexity").is_number() && member(recorded, "greedy_ids").is_array() &&
         std::ranges::all_of(recorded["greedy_ids"], [](const Json& id) { return id.is_number_integer(); });
}

std::set<std::string> files_of(const base::Path& directory) {
  std::set<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator(directory))
    if (entry.is_regular_file()) names.insert(base::as_utf8(fs::relative(entry.path(), directory).native()));
  names.erase(kCertificateFile);
  return names;
}

}  // namespace

Json hashed_files(const base::Path& directory) {
  Json files = Json::object();
  for (const auto& name : files_of(directory)) files[name] = base::hash_file(directory / name);
  return files;
}

Json read_certificate(const base::Path& directory) {
  const base::Path path = directory / kCertificateFile;
  const std::string where = path.string();
  require<ValidationError>(
      fs::is_regular_file(path), where,
      ": is not there, expected the certificate of what `retort export` wrote; export the model "
      "again.");
  Json certificate;
  try {
    certificate = base::parse_json(base::read_file(path, kMaxBytes), {.max_bytes = kMaxBytes});
  } catch (const base::JsonFault& fault) {
    throw ValidationError(base::join(where, ": not sound JSON at byte ", fault.byte, ": ", fault.reason,
                                     "; export the model again."));
  }
  const bool known = is_certificate(certificate);
  require<ValidationError>(known, where, ": expected a certificate of format ", kCertificateFormat,
                           "; use the version of Retort that wrote it, or export the model again.");
  return certificate;
}

void require_unchanged(const Json& certificate, const base::Path& directory) {
  const std::string where = directory.string();
  const auto there = files_of(directory);
  for (const auto& [name, hash] : certificate.at("files").items()) {
    require<ValidationError>(
        there.contains(name), where, ": file \"", name,
        "\" is missing, expected it as the certificate lists it; export the model again.");
    require<ValidationError>(hash == base::hash_file(directory / base::Path(name)), where, ": file \"", name,
                             "\" has other bytes than those that were certified; export the model again.");
  }
  for (const auto& name : there)
    require<ValidationError>(certificate.at("files").contains(name), where, ": file \"", name,
                             "\" was added after the certificate; remove it.");
}

}  // namespace retort::publish
