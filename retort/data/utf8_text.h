#pragma once
// Plain text is UTF-8.  Other text would be learned from, and measured on, with U+FFFD for each of its
// letters.

#include <cstdint>
#include <string_view>

#include "retort/base/files.h"

namespace retort::data {

/// Throws DataError that names the first byte of `text` that is not UTF-8, and what converts the file;
/// `offset`: bytes of the file's text before `text`.
void require_utf8(const base::Path& path, std::string_view text, std::uint64_t offset);

/// The same of the first bytes of a file; where `whole` is false a character may be cut at their end.
void require_utf8_at_first(const base::Path& path, std::string_view first_bytes, bool whole);

}  // namespace retort::data
