#include "retort/io/quote.h"

#include <algorithm>
#include <cmath>

#include "retort/base/error.h"
#include "retort/base/printable.h"

namespace retort::io {

std::string quote(std::string_view text) {
  return base::quote(text);
}

std::string listed(const std::vector<std::string>& texts) {
  constexpr std::size_t kShown = 4;
  std::string list;
  for (std::size_t i = 0; i < std::min(kShown, texts.size()); ++i)
    list += (i == 0 ? "" : i + 1 == texts.size() ? " and " : ", ") + quote(texts[i]);
  return texts.size() > kShown ? base::join(list, " and ", texts.size() - kShown, " more") : list;
}

// JSON has no word for a number that is not finite.
std::string shown(const base::Json& value) {
  if (value.is_string()) return quote(value.get_ref<const std::string&>());
  if (value.is_number_float() && !std::isfinite(value.get<double>()))
    return quote(base::join(value.get<double>()));
  return quote(value.dump(-1, ' ', false, base::Json::error_handler_t::replace));
}

}  // namespace retort::io
