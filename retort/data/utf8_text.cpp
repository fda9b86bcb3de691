#include "retort/data/utf8_text.h"

#include <cstdio>
#include <string>

#include "retort/base/error.h"
#include "retort/io/text_file.h"
#include "retort/text/unicode.h"

namespace retort::data {
namespace {

[[noreturn]] void refuse(const base::Path& path, std::string_view text, std::size_t good,
                         std::uint64_t offset) {
  char found[32];
  std::snprintf(found, sizeof found, "the byte 0x%02X",
                static_cast<unsigned>(static_cast<unsigned char>(text[good])));
  const auto format = offset + good == 0 ? io::binary_format(text) : std::string();
  throw base::DataError(base::join(path.string(), ", byte ", offset + good,
                                   ": expected text in UTF-8, found ", format.empty() ? found : format,
                                   "; convert the file, for example by iconv -f LATIN1 -t UTF-8, or let the "
                                   "recipe skip such documents (skip_bad_lines)."));
}

}  // namespace

void require_utf8(const base::Path& path, std::string_view text, std::uint64_t offset) {
  const auto good = text::valid_utf8_prefix(text);
  if (good < text.size()) refuse(path, text, good, offset);
}

void require_utf8_at_first(const base::Path& path, std::string_view first_bytes, bool whole) {
  constexpr std::size_t kCutCharacterBytes = 3;
  const auto good = text::valid_utf8_prefix(first_bytes);
  const auto left = first_bytes.size() - good;
  if (left > (whole ? 0 : kCutCharacterBytes)) refuse(path, first_bytes, good, 0);
}

}  // namespace retort::data
