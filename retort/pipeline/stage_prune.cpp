// Stages prune and sparsify.
#include <ATen/ATen.h>

#include "retort/base/error.h"
#include "retort/data/windows.h"
#include "retort/model/weights.h"
#include "retort/pipeline/stages.h"
#include "retort/prune/greedy.h"
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

}  // namespace

base::Json run_prune_stage(const Context& context, const Stage& stage) {
  return compress<prune::PruneOptions>(
      context, stage, [&](const auto& input, const auto& domains, const auto& options) {
        const bool stepwise =
            options.units == prune::Units::uniform && options.search.method == prune::SearchMethod::greedy;
        if (stepwise) return prune::prune_greedy(input, domains, options, context.observer);
        return prune::prune_searched(input, domains, options,
                                     context.directory.checkpoints(stage.name) / "search.jsonl",
                                     context.observer);
      });
}

base::Json run_sparsify_stage(const Context& context, const Stage& stage) {
  return compress<prune::SparsifyOptions>(context, stage,
                                          [&](const auto& input, const auto& domains, const auto& options) {
                                            return prune::sparsify(input, domains, options, context.observer);
                                          });
}

}  // namespace retort::pipeline
