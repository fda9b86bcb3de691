#include "retort/pipeline/dry_run.h"

#include <algorithm>
#include <map>
#include <optional>

#include "retort/base/error.h"
#include "retort/base/units.h"
#include "retort/bench/matrix_product.h"

namespace retort::pipeline {
namespace {

// Of the rate of products: what stages reach, a search by layer least and scores most (benchmarks).
constexpr double kLeastShare = 0.5, kMostShare = 0.85;

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

  Seconds seconds(const StageWork& work) {
    const auto rates = measured(work.dtype);
    return {work.least_flops / (kMostShare * rates.best), work.most_flops / (kLeastShare * rates.mean)};
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
  void add_work(const recipe::Stage& stage, const ResolvedStage& resolved, const char* condition) {
    if (!resolved.work) {
      uncounted_ += base::join(uncounted_.empty() ? "" : ", ", stage.name);
      return;
    }
    const auto work = resolved.work();
    const auto time = rates_.seconds(work);
    all_ = {all_.least + time.least, all_.most + time.most};
    const auto least = base::human_flops(work.least_flops), most = base::human_flops(work.most_flops);
    text_ += base::join("stage ", stage.name, ": ", work.sentence, "; ",
                        least == most ? least : least + " to " + most, ", ", in_words(time), " here",
                        condition, ".\n");
  }

  const PlanContext& context_;
  Rates rates_;
  std::string text_;
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
