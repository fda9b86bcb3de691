#include "retort/pipeline/dry_run.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "retort/base/error.h"
#include "retort/base/units.h"
#include "retort/bench/matrix_product.h"
#include "retort/pipeline/generated_text.h"

namespace retort::pipeline {
namespace {

// Of the rate of products: what stages reach, a search by layer least and scores most (benchmarks).
constexpr double kLeastShare = 0.5, kMostShare = 0.85;
// The same of texts that grow by a token at a time: bounds by estimate.
constexpr double kLeastWritingShare = 0.05, kMostWritingShare = 0.5;

struct Seconds {
  double least = 0, most = 0;
};

std::string in_words(const Seconds& time) {
  const auto least = base::human_seconds(time.least), most = base::human_seconds(time.most);
  return "about " + (least == most ? least : least + " to " + most);
}

// Rates of this machine are measured once for each type.
class Rates {
 public:
  explicit Rates(at::Device device) : device_(device) {}

  Seconds seconds(const StageWork& work, double least_share = kLeastShare, double most_share = kMostShare) {
    const auto rates = measured(work.dtype);
    return {work.least_flops / (most_share * rates.best), work.most_flops / (least_share * rates.mean)};
  }

 private:
  bench::MatrixRates measured(at::ScalarType dtype) {
    const auto [found, is_new] = measured_.try_emplace(dtype);
    if (is_new) found->second = bench::matrix_rates(dtype, device_);
    return found->second;
  }

  at::Device device_;
  std::map<at::ScalarType, bench::MatrixRates> measured_;
};

// Models that are still to be pruned count as they are before: a stage that fits then fits for sure, and
// takes no longer.
struct Unpruned {
  std::optional<ResolvedStage> stage;
  std::string memory;
};

Unpruned unpruned(const PlanContext& context, const recipe::Stage& stage) {
  const auto models = context.models.unpruned();
  const char* later = "memory is planned when its models are there";
  Unpruned found{.stage = {}, .memory = later};
  try {
    found.stage =
        functions_of(stage.kind)
            .resolve({context.recipe, models, context.observer, context.dtype, context.place}, stage);
    if (!found.stage->memory) return found;
    shard::require_fits(*found.stage->memory, context.place.bytes_of_rank());
    found.memory = "memory plan, as if its models were not pruned\n" + shard::describe(*found.stage->memory);
  } catch (const base::MemoryError& error) {
    found.memory = base::join(later, "; not pruned they would not fit: ", error.what());
  } catch (const base::UsageError&) {  // which blocks a layer_map finds, only pruned models say
  }
  return found;
}

class Description {
 public:
  explicit Description(const PlanContext& context) : context_(context), rates_(context.place.device) {}

  void add(const recipe::Stage& stage, const ResolvedStage& resolved) {
    for (const auto& source : context_.recipe.sources(stage))
      if (!is_there(source) && texts_.insert(source.name).second) add_text(source);
    const auto is_known = [&](const std::string& name) { return context_.models.config(name).has_value(); };
    if (std::ranges::all_of(stage.models_read(), is_known)) {
      begin(stage,
            resolved.memory ? "memory plan\n" + shard::describe(*resolved.memory) : "it holds no model");
      add_work(stage, resolved, "");
    } else {
      const auto before = unpruned(context_, stage);
      begin(stage, before.memory);
      if (before.stage) add_work(stage, *before.stage, ", as if its models were not pruned");
    }
  }

  void begin(const recipe::Stage& stage, const std::string& memory) {
    text_ += base::join("stage ", stage.name, " (", recipe::name(stage.kind), "): ", memory, "\n");
  }

  std::string finished() const {
    if (all_.most <= 0) return text_;
    return text_ + base::join("in all: ", in_words(all_), uncounted_.empty() ? "" : " without " + uncounted_,
                              "; beside other work it takes longer.\n");
  }

 private:
  // What a model is to write before the next stage.
  void add_text(const data::SourceOptions& source) {
    const auto planned = planned_text(context_, source);
    const char* condition = context_.models.path(source.generated.model)
                                ? ""
                                : ", as if its model were the one that it is made of";
    text_ += base::join("text ", source.name, ", by ", source.generated.model, ": ",
                        planned.memory
                            ? base::join("memory plan", condition, "\n", shard::describe(*planned.memory))
                            : "memory is planned when its model is there",
                        "\n");
    if (planned.work)
      add_line("text " + source.name, *planned.work,
               rates_.seconds(*planned.work, kLeastWritingShare, kMostWritingShare), condition);
    else
      add_uncounted("text " + source.name);
  }

  void add_uncounted(const std::string& what) {
    uncounted_ += base::join(uncounted_.empty() ? "" : ", ", what);
  }

  void add_work(const recipe::Stage& stage, const ResolvedStage& resolved, const char* condition) {
    if (!resolved.work) return add_uncounted(stage.name);
    const auto work = resolved.work();
    add_line("stage " + stage.name, work, rates_.seconds(work), condition);
  }

  void add_line(const std::string& what, const StageWork& work, const Seconds& time, const char* condition) {
    all_ = {all_.least + time.least, all_.most + time.most};
    const auto least = base::human_flops(work.least_flops), most = base::human_flops(work.most_flops);
    text_ += base::join(what, ": ", work.sentence, "; ", least == most ? least : least + " to " + most, ", ",
                        in_words(time), " here", condition, ".\n");
  }

  const PlanContext& context_;
  Rates rates_;
  std::string text_;
  std::set<std::string> texts_;  // that a model is to write
  Seconds all_;
  std::string uncounted_;  // stages whose work nobody knows
};

}  // namespace

std::string dry_run(const PlanContext& context, const CheckedStages& stages, const std::string& only_stage) {
  Description description(context);
  for (const auto& stage : context.recipe.stages) {
    if (!only_stage.empty() && stage.name != only_stage) continue;
    const auto found = stages.find(stage.name);
    if (found == stages.end())
      description.begin(stage, "finished before");
    else
      description.add(stage, found->second);
  }
  return description.finished();
}

}  // namespace retort::pipeline
