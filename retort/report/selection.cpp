#include "retort/report/differences.h"
#include "retort/report/fields.h"
#include "retort/report/numbers.h"
#include "retort/report/sections.h"

namespace retort::report {

using base::Json;

namespace {

Html table_of(const Json& result) {
  Table table("Each model was distilled for " + count(number(result, keys::kTokens)) +
                  " tokens with the same text in the same order. Tied: the 95 % interval of what is between "
                  "it and the "
                  "best, over held-out documents, covers 0 (\u2013: fewer than eight documents of a source, "
                  "or equal ones, tell nothing). The least loss is taken. Time is that of a forward pass of "
                  "one sequence, " +
                  timing_of(result) + ". " + kLimitsOfIntervals,
              {{"Model", "", true},
               {"Held-out NLL", "nats per token"},
               {"Behind the best", "nats per token"},
               {"95 % interval", ""},
               {"", "", true},
               {"Parameters", ""},
               {"Bytes", ""},
               {"FLOPs", "per token"},
               {"Time", "ms"}});
  const std::string chosen = text(result, keys::kChosen);
  for (const Json& one : elements(field(result, keys::kModels)))
    table.row({text(one, keys::kName), fixed(number(one, keys::kNll), 4),
               fixed(number(one, keys::kBehind), 4), interval_of(one), standing_of(one),
               count(number(one, keys::kParameters)), bytes(number(one, keys::kBytes)),
               count(number(one, keys::kFlopsPerToken)), fixed(milliseconds(one), 1)},
              text(one, keys::kName) == chosen ? "chosen" : "");
  return table.empty() ? Html() : table.html();
}

std::string milliseconds_of(const Json& object, record::Key key) {
  return fixed(1000 * number(object, key).value_or(0), 2) + " ms";
}

// What a target allows, and what each model takes.
Html target_of(const Json& latency) {
  if (!number(latency, keys::kTargetSeconds)) return {};
  std::string times, slow;
  for (const Json& one : elements(field(latency, keys::kModels))) {
    times +=
        (times.empty() ? "" : ", ") + text(one, keys::kName) + " " + milliseconds_of(one, keys::kSeconds);
    if (!is_true(one, keys::kMeetsTarget)) slow += (slow.empty() ? "" : ", ") + text(one, keys::kName);
  }
  return element("p", "The target allows " + milliseconds_of(latency, keys::kTargetSeconds) +
                          " a token at batch " + text(latency, keys::kBatch) + " and " +
                          text(latency, keys::kContext) + " tokens, in " + text(latency, keys::kDtype) +
                          ". Measured: " + times + "." +
                          (slow.empty() ? "" : " Too slow, so left out: " + slow + "."));
}

Html choice(const Stage& stage) {
  return table_of(stage.result) + target_of(field(stage.result, keys::kLatency)) +
         element("p", "Taken: " + text(stage.result, keys::kChosen) + ".");
}

}  // namespace

Html selection(const Run& run) {
  return each_stage(run, "select", choice);
}

}  // namespace retort::report
