#include "retort/io/quote.h"

#include <cmath>

#include "retort/base/error.h"
#include "retort/base/utf8.h"

namespace retort::io {
namespace {

constexpr std::size_t kMaxQuotedBytes = 120;

}  // namespace

std::string quote(std::string_view text) {
  std::size_t length = text.size();
  if (length > kMaxQuotedBytes) {
    length = kMaxQuotedBytes;
    while (length > 0 && base::is_utf8_continuation(text[length])) --length;
  }
  constexpr char kDigits[] = "0123456789abcdef";
  std::string out = "\"";
  for (std::string_view rest = text.substr(0, length); !rest.empty();) {
    const auto byte = static_cast<unsigned char>(rest.front());
    const std::size_t bytes = base::utf8_character_bytes(rest);
    if (byte < 0x20 || byte == 0x7F || bytes == 0)
      out += {'\\', 'x', kDigits[byte >> 4U], kDigits[byte & 15U]};
    else
      out += rest.substr(0, bytes);
    rest.remove_prefix(bytes > 0 ? bytes : 1);
  }
  return out + (length < text.size() ? "...\"" : "\"");
}

// JSON has no word for a number that is not finite.
std::string shown(const base::Json& value) {
  if (value.is_string()) return quote(value.get_ref<const std::string&>());
  if (value.is_number_float() && !std::isfinite(value.get<double>()))
    return quote(base::join(value.get<double>()));
  return quote(value.dump(-1, ' ', false, base::Json::error_handler_t::replace));
}

}  // namespace retort::io
