#pragma once
// The page of `retort bench generate`: Figure 5 of Dickmann et al., time to first token, prompts/s and
// tokens/s of models side by side.

#include <string>
#include <string_view>

#include "retort/base/json.h"

namespace retort::report {

/// `rates`: as docs/formats/rates.md has it.  What is missing is left out.
std::string generation_page(const base::Json& rates);

/// Whether a file that begins so is such a page.
bool is_generation_page(std::string_view beginning);

}  // namespace retort::report
