// Time and memory of the stages, planned and measured.
#include <algorithm>

#include "retort/report/fields.h"
#include "retort/report/sections.h"

namespace retort::report {
namespace {

using base::Json;

Number planned_for(const Json& result, const std::string& purpose) {
  Number sum;
  for (const Json& item : elements(field(result, keys::kMemoryPlan)))
    if (text(item, keys::kWhat) == purpose) sum = sum.value_or(0) + number(item, keys::kBytes).value_or(0);
  return sum;
}

}  // namespace

Html costs(const Run& run) {
  Table table(
      "What each stage took. Tensors are those in the memory of the processor, planned at most before the "
      "stage began; the peak of the process is that of all stages of its run so far.",
      {{"Stage", "", true},
       {"Kind", "", true},
       {"Time", ""},
       {"Planned", ""},
       {"Peak of tensors", ""},
       {"Peak of the process", ""}});
  for (const Stage& stage : run.stages)
    if (number(stage.result, keys::kPeakTensorBytes))
      table.row({stage.name, stage.kind, seconds(number(stage.result, keys::kSeconds)),
                 bytes(number(stage.result, keys::kMemoryPlannedBytes)),
                 bytes(number(stage.result, keys::kPeakTensorBytes)),
                 bytes(number(stage.result, keys::kProcessPeakBytes))});
  return table.empty() ? Html() : table.html();
}

Html memory(const Run& run) {
  std::vector<const Stage*> stages;
  std::vector<std::string> purposes;
  std::vector<Column> columns = {{"Purpose", "", true}};
  for (const Stage& stage : run.stages) {
    const auto& plan = elements(field(stage.result, keys::kMemoryPlan));
    if (plan.empty()) continue;
    stages.push_back(&stage);
    columns.push_back({stage.name});
    for (const Json& item : plan)
      if (const std::string what = text(item, keys::kWhat);
          std::find(purposes.begin(), purposes.end(), what) == purposes.end())
        purposes.push_back(what);
  }
  if (stages.empty()) return {};
  Table table("Bytes planned before the first step of training, by purpose, and the peak that was measured.",
              columns);
  const auto row = [&](const Html& title, const char* css_class, auto cell) {
    std::vector<Html> cells = {title};
    for (const Stage* stage : stages) cells.push_back(cell(stage->result));
    table.row(cells, css_class);
  };
  for (const std::string& purpose : purposes)
    row(purpose, "", [&](const Json& result) { return bytes(planned_for(result, purpose)); });
  row("Planned", "sum", [](const Json& result) { return bytes(number(result, keys::kMemoryPlannedBytes)); });
  row("Peak of tensors", "",
      [](const Json& result) { return bytes(number(result, keys::kPeakTensorBytes)); });
  row("Peak / planned", "", [](const Json& result) {
    const auto planned = number(result, keys::kMemoryPlannedBytes),
               peak = number(result, keys::kPeakTensorBytes);
    return percent(planned && peak && *planned > 0 ? Number(*peak / *planned) : Number());
  });
  return table.html();
}

}  // namespace retort::report
