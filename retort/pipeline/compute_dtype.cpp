#include "retort/pipeline/compute_dtype.h"

#include <algorithm>

#include "retort/base/error.h"
#include "retort/model/dtype.h"
#include "retort/pipeline/known_models.h"
#include "retort/record/run_files.h"

namespace retort::pipeline {
namespace {

// Of the model that a line of stages begins with, which is as wide as any that comes of it.
architecture::Config first_config(const recipe::Recipe& recipe, const recipe::Stage& stage) {
  const auto origins = stage.origins();
  return origins.empty() ? starting_config(stage) : KnownModels(recipe).config_of_line(origins.front());
}

std::optional<std::string> begun_with(const base::Path& run_directory) {
  const record::RunFiles run(run_directory);
  if (!run.holds_run()) return {};
  const auto saved = run.recipe();
  if (!saved.is_object() || !saved.contains("dtype")) return {};
  return saved.at("dtype").is_string() ? saved.at("dtype").get<std::string>() : "auto";
}

}  // namespace

std::optional<bench::ProductShape> trained_product(const recipe::Recipe& recipe) {
  for (const auto& stage : recipe.stages) {
    const auto* options = std::get_if<train::TrainOptions>(&stage.options);
    if (!options) continue;
    try {
      const auto config = first_config(recipe, stage);
      bench::ProductShape shape{.rows = options->packing.sequence_length * options->batch.sequences,
                                .inner = config.hidden_size,
                                .columns = config.hidden_size};
      for (const auto& block : config.blocks)
        if (const auto* mlp = std::get_if<architecture::DenseMlp>(&block.mlp))
          shape.columns = std::max(shape.columns, mlp->width);
      return shape;
    } catch (const base::Error&) {  // preflight says what is wrong with the model
    }
  }
  return {};
}

ComputeDtype compute_dtype(const recipe::Recipe& recipe, const base::Path& run_directory, at::Device device) {
  if (recipe.dtype != "auto") return {model::dtype_name(model::parse_compute_dtype(recipe.dtype)), {}};
  if (auto begun = begun_with(run_directory); begun && begun != "auto") return {*begun, {}};
  if (!device.is_cpu()) return {"bf16", {}};
  const auto shape = trained_product(recipe);
  if (!shape) return {"fp32", {}};
  const auto rates = bench::measure_types(*shape, device);
  return {model::dtype_name(rates.faster()), rates};
}

base::Json to_json(const bench::TypeRates& rates) {
  return {{"rows", rates.shape.rows},
          {"inner", rates.shape.inner},
          {"columns", rates.shape.columns},
          {"fp32_flops", rates.fp32},
          {"bf16_flops", rates.bf16}};
}

}  // namespace retort::pipeline
