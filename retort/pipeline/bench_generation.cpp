// What `retort bench generate` measures: texts that several models make of the same prompts.
#include <ATen/ATen.h>

#include <algorithm>
#include <optional>

#include "retort/architecture/counts.h"
#include "retort/base/error.h"
#include "retort/base/index.h"
#include "retort/base/machine.h"
#include "retort/bench/energy.h"
#include "retort/bench/generation_rates.h"
#include "retort/bench/stopwatch.h"
#include "retort/eval/memory_plan.h"
#include "retort/model/dtype.h"
#include "retort/model/weights.h"
#include "retort/ops/path.h"
#include "retort/ops/tensor_allocator.h"
#include "retort/pipeline/bench_prompts.h"
#include "retort/pipeline/float32_products.h"
#include "retort/pipeline/pipeline.h"
#include "retort/pipeline/torch_errors.h"

namespace retort::pipeline {
namespace {

using base::join;
using base::UsageError;

constexpr double kSecondsBetweenLooks = 10;  // at counters of energy
constexpr std::uint64_t kWeightSeed = 0;     // of random weights

std::size_t baseline_of(const BenchGenerationRequest& request, const std::vector<TimedModel>& models) {
  if (request.baseline.empty()) return 0;
  const auto found = std::ranges::find(models, request.baseline, &TimedModel::name);
  base::require<UsageError>(found != models.end(), "bench generate: expected --baseline to be one of the ",
                            "models, found '", request.baseline, "'; name it as a MODEL too.");
  return base::to_size(found - models.begin());
}

void check(const BenchGenerationRequest& request) {
  base::require<UsageError>(!request.models.empty() || !request.shapes.empty(),
                            "bench generate: expected a MODEL or a --shape, found neither; give one.");
  base::require<UsageError>(request.runs > 0 && request.runs <= std::int64_t{bench::kMostPairs},
                            "bench generate: expected 1 to ", bench::kMostPairs, " runs, found ",
                            request.runs, "; the exact test goes through 2^runs cases.");
}

class GenerationTimer {
 public:
  GenerationTimer(const BenchGenerationRequest& request, record::Observer& observer)
      : request_(request),
        observer_(observer),
        device_(model::parse_device(request.device)),
        dtype_(model::parse_scoring_dtype(request.dtype, device_)),
        models_(inspect_timed_models(request, observer)),
        baseline_(baseline_of(request, models_)),
        works_(timed_works(request, models_, baseline_)) {
    settle_float32_products(device_, observer);
    warn();
  }

  base::Json measured() {
    require_memory();
    for (auto& model : models_) load(model);
    auto bench = described();
    for (const auto& work : works_) bench.runs.push_back(runs_of(work));
    if (device_.is_cpu()) bench.energy_zones = energy_.zones();
    bench.no_energy = device_.is_cpu() ? energy_.why_not() : "counters of accelerators are not read";
    return bench::generation_json(bench);
  }

 private:
  void warn() const {
    const auto say = [&](const std::string& what) { observer_.message(record::Level::warning, what); };
    if (base::to_size(request_.runs) < bench::kEnoughRuns)
      say(join("bench generate: ", request_.runs, " runs are few; take at least ", bench::kEnoughRuns,
               " before a model is called faster."));
    for (const auto& work : works_)
      if (std::ssize(work.by_model.front()) < work.batch)
        say(join("bench generate: a batch of ", work.batch, " is never full, for there are ",
                 work.by_model.front().size(), " prompts."));
    for (std::size_t i = 0; i < models_.size(); ++i)
      if (!same_ids(works_, i, baseline_) && models_[i].text && models_[baseline_].text)
        say(join("bench generate: ", models_[i].name, " has ", prompt_tokens(i),
                 " tokens in the prompts where ", models_[baseline_].name, " has ", prompt_tokens(baseline_),
                 ": the tokenizers differ, so tokens/s are of other amounts of text."));
  }

  std::int64_t prompt_tokens(std::size_t model) const {
    std::int64_t tokens = 0;
    for (const auto& prompt : works_.front().by_model[model]) tokens += std::ssize(prompt.ids);
    return tokens;
  }

  eval::TextsOptions options_of(const TimedModel& model, const TimedWork& work) const {
    auto options = model.options;
    options.texts_at_once = work.batch;
    return options;
  }

  void require_memory() const {
    std::int64_t largest = 1;
    for (const auto& work : works_) largest = std::max(largest, work.batch);
    const auto plan_of = [&](std::int64_t batch) { return plan_of_all(batch); };
    const auto available = available_bytes(request_.available_memory, device_);
    auto plan = plan_of(largest);
    observer_.message(record::Level::debug, "memory plan\n" + shard::describe(plan));
    if (plan.total_bytes() <= available) return;
    const auto fitting = eval::most_that_fit(available, largest - 1, plan_of);
    plan.advice =
        join(fitting > 0 ? join("make at most ", fitting, " texts at once (--batch), ") : "",
             "time fewer models, shorten the prompts, ask for fewer new tokens, or use a machine with "
             "more");
    shard::require_fits(plan, available);
  }

  // With no more than `batch` texts at once.
  shard::MemoryPlan plan_of_all(std::int64_t batch) const {
    eval::PlanOfLoadedModels all;
    for (std::size_t i = 0; i < models_.size(); ++i) {
      std::vector<shard::MemoryPlan> plans;
      for (const auto& work : works_) {
        auto options = options_of(models_[i], work);
        options.texts_at_once = std::min(options.texts_at_once, batch);
        plans.push_back(eval::plan_texts(models_[i].config, item_bytes(), work.by_model[i], options,
                                         ops::path_of(device_), eval::WeightsFrom::file));
      }
      all.add(models_[i].name, plans);
    }
    return all.plan();
  }

  std::int64_t item_bytes() const { return static_cast<std::int64_t>(at::elementSize(dtype_)); }

  void load(TimedModel& model) const {
    const auto source = model.random_weights ? model::random_source(model.config, kWeightSeed)
                                             : model::open_weights(model.path);
    model.weights = std::make_unique<eval::TextWeights>(source, dtype_, device_);
  }

  bench::GenerationBench described() const {
    bench::GenerationBench bench{.machine = bench::this_machine(device_),
                                 .dtype = model::dtype_name(dtype_),
                                 .prompts = request_.prompts.string(),
                                 .new_tokens = request_.new_tokens,
                                 .warmup = request_.warmup,
                                 .free_length = request_.free_length,
                                 .models = {},
                                 .baseline = baseline_,
                                 .energy_zones = {},
                                 .no_energy = {},
                                 .runs = {}};
    for (std::size_t i = 0; i < models_.size(); ++i)
      bench.models.push_back(
          {.name = models_[i].name,
           .parameters = architecture::num_parameters(models_[i].config),
           .flops_per_token = architecture::flops_per_token(models_[i].config, longest_text()),
           .random_weights = models_[i].random_weights,
           .same_ids = same_ids(works_, i, baseline_),
           .packing = models_[i].weights->packing()});
    return bench;
  }

  std::int64_t longest_text() const {
    std::int64_t longest = 0;
    for (const auto& work : works_)
      longest = std::max(longest, eval::longest_prompt(work.by_model[baseline_]));
    return longest + request_.new_tokens;
  }

  // Every other round goes through the models backwards, so that none comes first more often.
  bench::GenerationRuns runs_of(const TimedWork& work) {
    const auto& prompts = work.by_model[baseline_];
    const auto shortest =
        std::ranges::min_element(prompts, {}, [](const eval::Prompt& prompt) { return prompt.ids.size(); });
    bench::GenerationRuns runs{{.batch = work.batch,
                                .texts = prompts.size(),
                                .shortest_prompt = std::ssize(shortest->ids),
                                .longest_prompt = eval::longest_prompt(prompts)},
                               std::vector<std::vector<bench::RunMeasures>>(models_.size())};
    for (std::int64_t round = -request_.warmup; round < request_.runs; ++round)
      for (std::size_t place = 0; place < models_.size(); ++place) {
        const auto which = round % 2 == 0 ? place : models_.size() - 1 - place;
        const auto times = run_of(models_[which], work.by_model[which], options_of(models_[which], work));
        if (round >= 0) runs.by_model[which].push_back(bench::measures_of(times, work.batch == 1));
        observer_.progress("bench generate: runs", ++done_, all_runs());
      }
    return runs;
  }

  std::int64_t all_runs() const {
    return std::ssize(works_) * std::ssize(models_) * (request_.warmup + request_.runs);
  }

  // Of an accelerator's machine the processors are the smaller part.
  std::optional<double> joules() { return device_.is_cpu() ? energy_.joules() : std::nullopt; }

  // The clock begins when all is there that a first pass needs.
  bench::RunTimes run_of(const TimedModel& model, std::span<const eval::Prompt> prompts,
                         const eval::TextsOptions& options) {
    bench::RunTimes times;
    times.tokens.resize(prompts.size());
    for (auto& text : times.tokens) text.reserve(base::to_size(request_.new_tokens));
    std::optional<bench::Stopwatch> watch;
    double looked = 0;
    std::size_t ended = 0;
    const eval::TextsListener listener{.begins =
                                           [&] {
                                             energy_.start();
                                             watch.emplace(device_);
                                           },
                                       .token =
                                           [&](std::size_t prompt) {
                                             const double now = watch->seconds();
                                             times.tokens[prompt].push_back(now);
                                             if (now - looked < kSecondsBetweenLooks) return;
                                             energy_.look();
                                             looked = now;
                                           },
                                       .ends = {},
                                       .done =
                                           [&](std::size_t, const eval::Generation&) {
                                             if (++ended == prompts.size()) times.joules = joules();
                                           }};
    eval::generate_texts(*model.weights, prompts, options, listener);
    return times;
  }

  const BenchGenerationRequest& request_;
  record::Observer& observer_;
  at::Device device_;
  at::ScalarType dtype_;
  std::vector<TimedModel> models_;
  std::size_t baseline_;
  std::vector<TimedWork> works_;
  bench::EnergyMeter energy_;
  std::int64_t done_ = 0;
};

}  // namespace

base::Json bench_generation(const BenchGenerationRequest& request, record::Observer& observer) {
  base::Json rates;
  translate_torch_errors([&] {
    ops::install_tensor_allocator();
    check(request);
    rates = GenerationTimer(request, observer).measured();
  });
  return rates;
}

}  // namespace retort::pipeline
