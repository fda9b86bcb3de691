// What was asked for, and where and with what it was run.
#include "retort/report/fields.h"
#include "retort/report/sections.h"

namespace retort::report {

Html recipe(const Run& run) {
  std::string source = run.recipe_text;
  if (source.empty() && run.recipe.is_object())
    source = run.recipe.dump(2, ' ', false, base::Json::error_handler_t::replace);
  if (source.empty()) return {};
  return element("pre", element("code", source));
}

namespace {

Html table_of_start(const base::Json& start) {
  Table table("", {{"Key", "", true}, {"Value", "", true}});
  if (!start.is_object()) return {};
  for (const auto& [key, value] : start.items()) {
    const std::string shown = value.is_structured()
                                  ? value.dump(-1, ' ', false, base::Json::error_handler_t::replace)
                                  : text(value);
    table.row({key, shown.empty() ? kMissing : shown});
  }
  return table.empty() ? Html() : element("div", {{"class", "plain"}}, table.html());
}

}  // namespace

/// The newest start of the run; the earlier ones on demand.
Html provenance(const Run& run) {
  Html newest, earlier;
  for (const base::Json& start : elements(field(run.provenance, keys::kStarts))) {
    if (!newest.empty()) earlier += newest;
    newest = table_of_start(start);
  }
  return newest + (earlier.empty() ? Html() : details("Earlier starts", earlier));
}

}  // namespace retort::report
