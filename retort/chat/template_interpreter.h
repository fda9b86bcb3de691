#pragma once
// Renders a template: walks its syntax tree with bounded work.

#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "retort/chat/template_syntax.h"

namespace retort::chat {

/// What a template made.
struct Rendering {
  std::string text;
  /// First byte of an answer and the byte behind it, as `generation` of the template marks them.
  std::vector<std::pair<std::size_t, std::size_t>> answers;
};

/// Renders with these variables.  `now` is what strftime_now tells.  Throws TemplateFault, with the line.
Rendering render(const Syntax& syntax, std::vector<std::pair<std::string, Value>> variables,
                 const std::tm& now);

}  // namespace retort::chat
