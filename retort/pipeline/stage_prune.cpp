// Stages profile, prune and sparsify.
#include <ATen/ATen.h>

#include "retort/base/error.h"
#include "retort/base/hash.h"
#include "retort/data/windows.h"
#include "retort/model/weights.h"
#include "retort/pipeline/stages.h"
#include "retort/prune/greedy.h"
#include "retort/prune/profile.h"
#include "retort/prune/profile_file.h"
#include "retort/prune/searched.h"
#include "retort/prune/sparsify.h"

namespace retort::pipeline {
namespace {

using recipe::Stage;

// Every source is a domain with an equal share of the tokens.
std::vector<prune::CalibrationDomain> calibration(const Context& context, const Stage& stage,
                                                  const ModelText& text, std::int64_t tokens,
                                                  std::int64_t sequence_length, std::uint64_t seed) {
  std::vector<prune::CalibrationDomain> domains;
  const auto sources = context.sources(stage);
  const auto per_domain = tokens / static_cast<std::int64_t>(sources.size());
  const auto count = std::max<std::int64_t>(1, (per_domain + sequence_length - 1) / sequence_length);
  const data::PackingOptions packing{.sequence_length = sequence_length, .bos = text.special.bos >= 0};
  for (const auto& source : sources)
    domains.push_back({source.name, data::calibration_sequences(source, packing, text.encode(), text.special,
                                                                seed, count)});
  return domains;
}

// What makes a model this model and no other, wherever it lies.
base::Json fingerprint(const base::Path& model) {
  auto files = describe_input("", model).at("xxh128");
  files["config.json"] = base::hash_file(model / "config.json");
  return files;
}

base::Json identity_of(const base::Path& model, const std::vector<prune::CalibrationDomain>& domains,
                       const prune::ProfileOptions& options) {
  base::Hasher text;
  for (const auto& domain : domains)
    for (const auto& sequence : domain.sequences) {
      text.update(sequence.ids.data(), sequence.ids.size() * sizeof sequence.ids.front());
      text.update(sequence.starts.data(), sequence.starts.size() * sizeof(std::int32_t));
    }
  return {{"model", fingerprint(model)},
          {"text", text.hex()},
          {"sequence_length", options.sequence_length},
          {"seed", options.seed}};
}

// A profile of less text than was asked for would be taken for one of all of it.
void require_enough_text(const Stage& stage, const std::vector<prune::CalibrationDomain>& domains,
                         const prune::ProfileOptions& options) {
  const auto wanted = options.calibration_tokens / static_cast<std::int64_t>(domains.size());
  for (const auto& domain : domains) {
    std::int64_t found = 0;
    for (const auto& sequence : domain.sequences) found += std::ssize(sequence.ids);
    base::require<base::DataError>(found >= wanted, "stage '", stage.name, "': source '", domain.name,
                                   "' has only ", found, " tokens of calibration text, expected ", wanted,
                                   "; add text or lower calibration_tokens.");
  }
}

std::optional<std::vector<prune::BlockScores>> scores_of_profile(const Context& context, const Stage& stage,
                                                                 const model::Weights& input) {
  if (stage.profile.empty()) return {};
  const auto directory = context.directory.stage_directory(stage.profile);
  const auto description = prune::read_profile_description(directory);
  base::require<base::UsageError>(
      description.at("identity").at("model") == fingerprint(context.model_path(stage.from)), "stage '",
      stage.name, "': profile '", stage.profile, "' is of another model than '", stage.from,
      "'; profile this one.");
  const auto& options = std::get<prune::PruneOptions>(stage.options);
  return prune::profile_scores(directory, input,
                               {options.channel_ranking, options.winsorise_quantile, options.hidden});
}

// Loads in float32, works, saves: the frame of both kinds.
template <typename Options, typename Work>
base::Json compress(const Context& context, const Stage& stage, Work work) {
  const auto& options = std::get<Options>(stage.options);
  const auto path = context.model_path(stage.from);
  const auto input = model::load_weights(path, at::kFloat, context.device);
  require_context(stage.name, "sequence_length", options.sequence_length, input.config);
  const auto text = read_model_text(path, input.config);
  const auto domains =
      calibration(context, stage, text, options.calibration_tokens, options.sequence_length, options.seed);
  auto result = work(input, domains, options);
  model::save_model(result.weights, context.directory.model_directory(stage.name), path,
                    provenance_of(stage, at::kFloat, base::Json::array({describe_input(stage.from, path)})));
  return result.report;
}

// Saves finalists as they come, from number 2.
std::function<void(const model::Weights&)> saver(const Context& context, const Stage& stage) {
  std::filesystem::remove_all(context.finalist_path(stage.name, 2).parent_path());  // of an earlier attempt
  const auto path = context.model_path(stage.from);
  const auto provenance =
      provenance_of(stage, at::kFloat, base::Json::array({describe_input(stage.from, path)}));
  return [=, &context, number = std::size_t{2}](const model::Weights& weights) mutable {
    model::save_model(weights, context.finalist_path(stage.name, number++), path, provenance);
  };
}

}  // namespace

base::Json run_profile_stage(const Context& context, const Stage& stage) {
  const auto& options = std::get<prune::ProfileOptions>(stage.options);
  const auto path = context.model_path(stage.from);
  const auto input = model::load_weights(path, at::kFloat, context.device);
  require_context(stage.name, "sequence_length", options.sequence_length, input.config);
  const auto domains = calibration(context, stage, read_model_text(path, input.config),
                                   options.calibration_tokens, options.sequence_length, options.seed);
  require_enough_text(stage, domains, options);
  return prune::profile(input, domains,
                        {.directory = context.directory.stage_directory(stage.name),
                         .scratch = context.directory.checkpoints(stage.name),
                         .identity = identity_of(path, domains, options),
                         .memory = available_bytes(context.recipe)},
                        context.observer);
}

base::Json run_prune_stage(const Context& context, const Stage& stage) {
  return compress<prune::PruneOptions>(
      context, stage, [&](const auto& input, const auto& domains, const auto& options) {
        const bool stepwise =
            options.units == prune::Units::uniform && options.search.method == prune::SearchMethod::greedy;
        const auto scores = scores_of_profile(context, stage, input);
        const auto* given = scores ? &*scores : nullptr;
        const auto saved = context.directory.checkpoints(stage.name) / "search.jsonl";
        if (stepwise) return prune::prune_greedy(input, domains, options, context.observer, given, saved);
        return prune::prune_searched(input, domains, options, saved, context.observer, given,
                                     saver(context, stage));
      });
}

base::Json run_sparsify_stage(const Context& context, const Stage& stage) {
  return compress<prune::SparsifyOptions>(context, stage,
                                          [&](const auto& input, const auto& domains, const auto& options) {
                                            return prune::sparsify(input, domains, options, context.observer);
                                          });
}

}  // namespace retort::pipeline
