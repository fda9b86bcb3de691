#pragma once
// What models are timed on: the same prompts for all, in each one's ids.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "retort/architecture/config.h"
#include "retort/eval/generate_texts.h"
#include "retort/eval/text_weights.h"
#include "retort/pipeline/context.h"
#include "retort/pipeline/pipeline.h"

namespace retort::pipeline {

/// A model that is to be timed.
struct TimedModel {
  std::string name;  ///< as it was typed; a second one of the same name has a number behind
  base::Path path;
  bool random_weights = false;
  architecture::Config config;
  std::optional<ModelText> text;  ///< none: a shape without a tokenizer
  eval::TextsOptions options;
  std::unique_ptr<eval::TextWeights> weights;  ///< null until it is loaded
};

/// One measurement of all models.
struct TimedWork {
  std::int64_t batch = 1;                           ///< texts at once
  std::vector<std::vector<eval::Prompt>> by_model;  ///< as many for each model
};

/// The configurations and tokenizers of all models, and how they make texts.  Throws what reading them
/// throws.
std::vector<TimedModel> inspect_timed_models(const BenchGenerationRequest& request,
                                             record::Observer& observer);

/// Prompts of the file, else random ids that every model has, for each length and number of texts at once. A
/// shape without a tokenizer gets random ids, as many as the baseline has.  Throws UsageError for a prompt
/// without tokens, longer than a context, with ids outside a vocabulary, or without room for the new tokens.
std::vector<TimedWork> timed_works(const BenchGenerationRequest& request,
                                   const std::vector<TimedModel>& models, std::size_t baseline);

/// Whether two models read the same ids.
bool same_ids(const std::vector<TimedWork>& works, std::size_t one, std::size_t other);

}  // namespace retort::pipeline
