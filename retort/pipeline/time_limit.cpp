#include "retort/pipeline/time_limit.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "retort/comm/lead.h"
#include "retort/eval/token_times.h"
#include "retort/model/dtype.h"
#include "retort/model/weights.h"
#include "retort/ops/threads.h"
#include "retort/record/keys.h"
#include "retort/record/scratch.h"
#include "retort/record/stopped.h"

namespace retort::pipeline {
namespace {

namespace keys = record::keys;

constexpr std::int64_t kRounds = 2;  // so that what slows the machine for a while slows no model alone

// In the order of the paths.
std::vector<double> measured_seconds(const Context& context, const recipe::Stage& stage,
                                     const std::vector<base::Path>& paths) {
  std::optional<ops::Threads> threads;
  if (context.threads_of_machine() > 0) threads.emplace(context.threads_of_machine());
  const auto options = eval::token_time_options(stage.target, context.place.device);
  std::vector<double> seconds(paths.size(), std::numeric_limits<double>::infinity());
  std::int64_t done = 0;
  for (std::int64_t round = 0; round < kRounds; ++round)
    for (std::size_t i = 0; i < paths.size(); ++i) {
      eval::TextWeights weights(model::open_weights(paths[i]), options.dtype, options.device);
      seconds[i] = std::min(seconds[i], eval::token_seconds(weights, options));
      context.observer.progress("select: times of models", ++done, kRounds * std::ssize(paths));
      record::stop_if_asked(context.observer, "select", "nothing yet");
    }
  return seconds;
}

base::Json measured(const Context& context, const recipe::Stage& stage,
                    const std::vector<base::Path>& models) {
  const auto& target = stage.target;
  auto paths = models;
  if (target.latency > 0) paths.push_back(context.model_path(stage.teacher));
  auto seconds = measured_seconds(context, stage, paths);
  const auto options = eval::token_time_options(target, context.place.device);
  base::Json json = {{"batch", options.batch},
                     {keys::kContext, options.context},
                     {keys::kDtype, model::dtype_name(options.dtype)},
                     {"device", options.device.str()},
                     {"threads", at::get_num_threads()}};
  if (target.latency > 0) {
    json[keys::kTeacherSeconds] = seconds.back();
    seconds.pop_back();
  }
  json[keys::kSeconds] = seconds;
  return json;
}

// By the contents of the models.
base::Json identity_of(const Context& context, const recipe::Stage& stage,
                       const std::vector<base::Path>& models) {
  const auto& target = stage.target;
  base::Json identity = {target.batch, target.context, target.dtype, context.place.device.str()};
  for (const auto& model : models) identity.push_back(weight_checksums(model));
  if (target.latency > 0) identity.push_back(weight_checksums(context.model_path(stage.teacher)));
  return identity;
}

}  // namespace

TimedModels timed_models(const Context& context, const recipe::Stage& stage,
                         const std::vector<base::Path>& models) {
  const auto text = comm::led(context.group, [&] {
    return record::kept_times(context.directory.checkpoints(stage.name), identity_of(context, stage, models),
                              [&] { return measured(context, stage, models); })
        .dump();
  });
  TimedModels timed;
  timed.conditions = base::parse_json(text);
  timed.seconds = timed.conditions.at(keys::kSeconds).get<std::vector<double>>();
  timed.conditions.erase(std::string(keys::kSeconds));
  timed.limit_seconds = stage.target.seconds(timed.conditions.value(keys::kTeacherSeconds, 0.0));
  return timed;
}

shard::MemoryPlan timing_plan(const PlanContext& context, const recipe::Stage& stage,
                              const architecture::Config& model) {
  return eval::plan_token_seconds(model, eval::token_time_options(stage.target, context.place.device));
}

}  // namespace retort::pipeline
