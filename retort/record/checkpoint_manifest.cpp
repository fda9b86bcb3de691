#include "retort/record/checkpoint_manifest.h"

#include "retort/base/error.h"
#include "retort/base/json_file.h"
#include "retort/record/checked_json.h"

namespace retort::record {

using base::Json;
using base::ModelError;
using base::Path;
using base::require;

void write_manifest(const Path& checkpoint, const Json& head, const std::vector<CheckpointPart>& parts) {
  Json manifest = {{"format", parts.size() == 1 ? kWholeCheckpoint : kCheckpointParts}};
  manifest.update(head);
  auto& files = manifest["files"] = Json::object();
  for (const auto& part : parts) files[part.file] = part.xxh128;
  if (parts.size() > 1) {
    auto& ranges = manifest["ranges"] = Json::object();
    for (const auto& part : parts) ranges[part.file] = part.ranges;
  }
  base::write_file_atomically(checkpoint / kManifest, with_checksum(std::move(manifest)).dump(1) + "\n");
}

Json read_manifest(const Path& checkpoint) try {
  const Path path = checkpoint / kManifest;
  Json manifest = base::read_own_json(path);
  const auto format = manifest.at("format");
  require<ModelError>(format == kWholeCheckpoint || format == kCheckpointParts, path.string(), ": format ",
                      format.dump(), ", expected ", kWholeCheckpoint, " or ", kCheckpointParts, ".");
  require<ModelError>(checksum_fits(manifest), path.string(),
                      ": the checksum does not fit, the file is damaged.");
  for (const char* key : {"step", "tokens", "seconds", "cursor", "identity", "files"}) (void)manifest.at(key);
  return manifest;
} catch (const base::DataError& error) {  // a manifest of more bytes than any has
  throw ModelError(error.what());
} catch (const base::JsonFault& fault) {
  throw ModelError(base::join((checkpoint / kManifest).string(), ": not JSON at byte ", fault.byte, ": ",
                              fault.reason, "."));
} catch (const Json::exception& error) {
  throw ModelError(
      base::join((checkpoint / kManifest).string(), ": not a checkpoint's manifest (", error.what(), ")."));
}

}  // namespace retort::record
