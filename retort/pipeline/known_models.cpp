#include "retort/pipeline/known_models.h"

#include <algorithm>

#include "retort/architecture/counts.h"
#include "retort/architecture/hf_config.h"
#include "retort/base/error.h"
#include "retort/io/model_directory.h"
#include "retort/recipe/stage_kinds.h"

namespace retort::pipeline {

architecture::Config starting_config(const recipe::Stage& stage, std::vector<std::string>* notes) {
  const base::Path file = stage.config;
  std::error_code ignored;
  base::require<base::ModelError>(std::filesystem::is_regular_file(file, ignored), "stage '", stage.name,
                                  "': config: there is no file '", stage.config,
                                  "'; give the path of a config.json or of a GGUF file.");
  if (io::is_gguf(file)) return architecture::read_config(file, notes);
  return architecture::parse_hf_config(base::read_file(file, std::size_t{1} << 20), stage.config, notes);
}

std::optional<base::Path> KnownModels::path(const std::string& name) const {
  if (!recipe_.find_stage(name)) return name;
  if (made_ || finished(name)) return run_->model_directory(name);
  return {};
}

std::optional<architecture::Config> KnownModels::config(const std::string& name) const {
  if (const auto directory = path(name)) return architecture::read_config(*directory);
  const auto& stage = recipe_.stage(name);
  if (recipe::traits_of(stage.kind).decides_shape && !unpruned_) return {};
  return stage.origins().empty() ? starting_config(stage) : config(origin_of(stage));
}

std::string KnownModels::origin_of(const recipe::Stage& stage) const {
  const auto origins = stage.origins();
  if (origins.size() == 1) return origins.front();
  return *std::ranges::max_element(origins, {}, [this](const std::string& name) {
    const auto known = config(name);
    return known ? architecture::num_parameters(*known) : 0;
  });
}

model::Lineage KnownModels::lineage(const std::string& name) const {
  if (const auto directory = path(name)) return model::read_lineage(*directory, *config(name));
  const auto& stage = recipe_.stage(name);
  return stage.origins().empty() ? model::whole_lineage(starting_config(stage)) : lineage(origin_of(stage));
}

bool KnownModels::is_sparse(const std::string& name) const {
  if (path(name)) return !lineage(name).sparse_layers.empty();
  const auto& stage = recipe_.stage(name);
  if (recipe::traits_of(stage.kind).makes_sparse) return true;
  return std::ranges::any_of(stage.origins(), [this](const auto& origin) { return is_sparse(origin); });
}

KnownModels KnownModels::unpruned() const {
  auto models = *this;
  models.unpruned_ = true;
  return models;
}

KnownModels KnownModels::as_made() const {
  base::ensure(run_.has_value(), "models that were made are those of a run");
  auto models = *this;
  models.made_ = true;
  return models;
}

architecture::Config KnownModels::config_of_line(const std::string& name) const {
  if (auto known = config(name)) return *known;
  const auto& stage = recipe_.stage(name);
  const auto origins = stage.origins();
  return origins.empty() ? starting_config(stage) : config_of_line(origins.front());
}

architecture::Config KnownModels::config_of_origin(const std::string& name) const {
  const auto* stage = recipe_.find_stage(name);
  if (!stage) return *config(name);
  const auto origins = stage->origins();
  return origins.empty() ? starting_config(*stage) : config_of_origin(origins.front());
}

base::Json KnownModels::recorded(const std::string& stage) const {
  if (!run_ || !run_->holds_run() || !run_->has_begun(stage)) return {};
  return run_->recipe().value("stages", base::Json::object()).value(stage, base::Json());
}

base::Path KnownModels::tokenizer_of_line(const std::string& name) const {
  if (auto known = path(name)) return *known;
  const auto& stage = recipe_.stage(name);
  const auto origins = stage.origins();
  return origins.empty() ? base::Path(stage.tokenizer) : tokenizer_of_line(origins.front());
}

}  // namespace retort::pipeline
