#include "retort/pipeline/sampling.h"

#include "retort/eval/generation_config.h"

namespace retort::pipeline {

eval::Sampling sampling_of(const SamplingRequest& asked, const std::string& model) {
  auto sampling = eval::default_sampling(model);
  // Who asks for a temperature decides whether tokens are drawn.
  if (asked.temperature) sampling.temperature = *asked.temperature;
  if (asked.top_k) sampling.top_k = *asked.top_k;
  if (asked.top_p) sampling.top_p = *asked.top_p;
  if (asked.min_p) sampling.min_p = *asked.min_p;
  if (asked.repetition_penalty) sampling.repetition_penalty = *asked.repetition_penalty;
  sampling.seed = asked.seed;
  return sampling;
}

}  // namespace retort::pipeline
