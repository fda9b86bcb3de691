// Models that were handed out: for which program, in which type, and how far they answer as before.
#include "retort/report/fields.h"
#include "retort/report/numbers.h"
#include "retort/report/sections.h"

namespace retort::report {

Html exports(const Run& run) {
  Table table("Each directory has a README.md, and a certificate.json that `retort verify` replays.",
              {{.title = "model", .words = true},
               {.title = "for", .words = true},
               {.title = "type", .words = true},
               {.title = "size"},
               {.title = "mean KL", .unit = "nats/token"},
               {.title = "file", .words = true},
               {.title = "a whole model of the family", .words = true}});
  for (const Stage& stage : run.stages) {
    if (stage.kind != "export" || !stage.result.is_object()) continue;
    const auto& logits = entry(field(stage.result, keys::kChecks), "logits");
    table.row({text(stage.recipe, keys::kFrom), text(stage.result, keys::kProgram),
               text(stage.result, keys::kType), bytes(number(stage.result, keys::kBytes)),
               significant(number(entry(logits, "mean_kl"))), text(stage.result, keys::kFile),
               text(stage.result, keys::kLoads)});
  }
  return table.empty() ? Html() : table.html();
}

}  // namespace retort::report
