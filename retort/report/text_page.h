#pragma once
// The page of `retort data inspect`: what sources of text hold, and samples of them.

#include <string>
#include <string_view>

#include "retort/base/json.h"

namespace retort::report {

/// `inspection`: {"sources": [...]}, each as data::inspect() has it.  What is missing is left out.
std::string text_page(const base::Json& inspection);

/// Whether a file that begins so is such a page.
bool is_text_page(std::string_view beginning);

}  // namespace retort::report
