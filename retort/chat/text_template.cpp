#include "retort/chat/text_template.h"

#include <algorithm>
#include <ctime>
#include <vector>

#include "retort/base/error.h"
#include "retort/base/utf8.h"
#include "retort/chat/template_interpreter.h"
#include "retort/chat/template_parser.h"

namespace retort::chat {
namespace {

std::string sentence(std::string_view what, const TemplateFault& fault) {
  return base::join(what, ": the template", fault.line > 0 ? base::join(", line ", fault.line) : "", ": ",
                    fault.reason, ".");
}

}  // namespace

struct TextTemplate::State {
  Syntax syntax;
};

TextTemplate TextTemplate::parse(std::string_view source, std::string where) {
  base::require<base::UsageError>(base::is_utf8(source), where,
                                  ": the template is not UTF-8; save it as such.");
  auto state = std::make_shared<State>();
  try {
    state->syntax = parse_template(source, Dialect::plain);
  } catch (const TemplateFault& fault) {
    throw base::UsageError(sentence(where, fault));
  }
  return TextTemplate(std::move(state));
}

std::string TextTemplate::render(const base::Json& variables, std::string_view what) const {
  const auto& names = state_->syntax.names;
  try {
    std::vector<std::pair<std::string, Value>> used;
    for (const auto& [name, value] : variables.items())
      if (std::find(names.begin(), names.end(), name) != names.end())
        used.emplace_back(name, from_json(value));
    return retort::chat::render(state_->syntax, std::move(used), std::tm{}).text;
  } catch (const TemplateFault& fault) {
    throw base::DataError(sentence(what, fault));
  }
}

}  // namespace retort::chat
