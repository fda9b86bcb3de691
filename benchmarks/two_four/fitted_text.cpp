// The text that a sparsify stage fits its weights to, for a program that is to see the same: a JSON list of
// token ids for each document, or for what a sequence has of one.
#include <CLI/CLI.hpp>
#include <iostream>

#include "retort/architecture/hf_config.h"
#include "retort/base/json.h"
#include "retort/calibrate/split_text.h"
#include "retort/data/windows.h"
#include "retort/pipeline/context.h"
#include "retort/prune/options.h"
#include "retort/sparsify/plan.h"

namespace {

using namespace retort;

struct Settings {
  std::string model;
  data::SourceOptions source;
  sparsify::SparsifyOptions stage;
};

std::vector<calibrate::SourceText> fitted(const Settings& s) {
  const auto config = architecture::read_config(s.model);
  const auto text = pipeline::read_model_text(s.model, config);
  const auto length = s.stage.sequence_length, tokens = sparsify::calibration_tokens_of(config, s.stage);
  const auto count = std::max<std::int64_t>(1, (tokens + length - 1) / length);
  auto sequences = data::calibration_sequences(s.source, {.sequence_length = length}, text.encode(),
                                               text.special, s.stage.seed, count);
  return calibrate::split_by_document({{s.source.name, std::move(sequences)}}).fitted;
}

void print(const data::Sequence& sequence) {
  for (std::size_t i = 0; i < sequence.starts.size(); ++i) {
    const auto begin = sequence.ids.begin() + sequence.starts[i];
    const auto end =
        i + 1 < sequence.starts.size() ? sequence.ids.begin() + sequence.starts[i + 1] : sequence.ids.end();
    std::cout << base::Json(std::vector<std::int32_t>(begin, end)).dump() << '\n';
  }
}

}  // namespace

int main(int argc, char** argv) {
  Settings s;
  s.source.name = "manuals";
  CLI::App app("The text that a sparsify stage fits its weights to");
  app.add_option("MODEL", s.model)->required();
  app.add_option("--text", s.source.paths)->required();
  app.add_option("--name", s.source.name, "of the source in the recipe: the draw depends on it");
  app.add_option("--separator", s.source.separator);
  app.add_option("--tokens", s.stage.calibration_tokens);
  app.add_option("--length", s.stage.sequence_length);
  app.add_option("--seed", s.stage.seed);
  CLI11_PARSE(app, argc, argv);
  try {
    for (const auto& source : fitted(s))
      for (const auto& sequence : source.sequences) print(sequence);
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "fitted_text: " << error.what() << std::endl;
    return 1;
  }
}
