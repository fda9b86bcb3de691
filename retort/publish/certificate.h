#pragma once
// certificate.json: what was handed out, and that it answers as the model that it was made from.

#include "retort/base/files.h"
#include "retort/base/json.h"

namespace retort::publish {

inline constexpr const char* kCertificateFile = "certificate.json";
inline constexpr int kCertificateFormat = 1;

/// XXH3 128-bit of every file of a directory but the certificate, by name.  Throws StorageError.
base::Json hashed_files(const base::Path& directory);

/// That of a directory.  Throws ValidationError where there is none, or one of another format.
base::Json read_certificate(const base::Path& directory);
/// Throws ValidationError, by name, for a file that is missing, was added or has other bytes.
void require_unchanged(const base::Json& certificate, const base::Path& directory);

}  // namespace retort::publish
