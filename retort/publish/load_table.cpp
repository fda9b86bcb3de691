#include "retort/publish/load_table.h"

#include <algorithm>

#include "retort/base/error.h"

namespace retort::publish {
namespace {

struct Row {
  std::string_view architecture, change, program, version, found;
};

constexpr Row kRows[] = {
#include "retort/publish/load_settings.inc"
#include "retort/publish/load_table.inc"
};

}  // namespace

SeenToLoad seen_to_load(std::string_view architecture, std::span<const std::string_view> changes,
                        std::string_view program) {
  using Answer = SeenToLoad::Answer;
  // Ollama runs llama.cpp.
  const std::string_view runner = program == "ollama" ? "llama.cpp" : program;
  SeenToLoad all;
  for (const std::string_view change : changes) {
    const auto row = std::ranges::find_if(kRows, [&](const Row& known) {
      return known.architecture == architecture && known.change == change && known.program == runner;
    });
    if (row == std::end(kRows)) return {Answer::not_tried, base::join("not tried in ", program)};
    if (row->found != "loads")
      return {row->found.starts_with("not pruned so") ? Answer::not_tried : Answer::fails,
              base::join(runner, " ", row->version, ", ", change, ": ", row->found)};
    all = {Answer::loads, base::join("loads in ", runner, " ", row->version)};
  }
  return all;
}

}  // namespace retort::publish
