#include "cli/text_options.h"

#include <CLI/CLI.hpp>

namespace retort::cli {

void add_sampling_options(CLI::App& app, pipeline::TextRequest& text) {
  app.add_option("--max-new-tokens", text.max_new_tokens, "At most so many for each text")
      ->capture_default_str()
      ->check(CLI::Range(1, 1 << 20));
  auto& sampling = text.sampling;
  app.add_option("--temperature", sampling.temperature,
                 "0: greedy; as generation_config.json has it by default")
      ->check(CLI::Range(0.0, 1000.0));
  app.add_option("--top-k", sampling.top_k, "Only so many tokens, the most likely ones; 0: all")
      ->check(CLI::Range(0, 1 << 30));
  app.add_option("--top-p", sampling.top_p, "Only the most likely tokens that together have this share");
  app.add_option("--min-p", sampling.min_p, "Only tokens so many times as likely as the most likely one");
  app.add_option("--repetition-penalty", sampling.repetition_penalty, "Of tokens that the text has; 1: none");
  app.add_option("--seed", sampling.seed, "Of sampling")->capture_default_str();
}

}  // namespace retort::cli
