// What was asked for, and where and with what it was run.
#include "retort/report/fields.h"
#include "retort/report/sections.h"

namespace retort::report {

Html recipe(const RunFiles& run) {
  std::string source = run.recipe_text;
  if (source.empty() && run.recipe.is_object())
    source = run.recipe.dump(2, ' ', false, base::Json::error_handler_t::replace);
  if (source.empty()) return {};
  return element("pre", element("code", source));
}

Html provenance(const RunFiles& run) {
  if (!run.provenance.is_object()) return {};
  Table table("", {{"Key", "", true}, {"Value", "", true}});
  for (const auto& [key, value] : run.provenance.items()) {
    std::string shown = text(value);
    if (value.is_structured()) shown = value.dump(-1, ' ', false, base::Json::error_handler_t::replace);
    table.row({key, shown.empty() ? kMissing : shown});
  }
  return table.empty() ? Html() : element("div", {{"class", "plain"}}, table.html());
}

}  // namespace retort::report
