#include "retort/pipeline/inspect_model.h"

#include <algorithm>
#include <iterator>

#include "retort/architecture/checkpoint.h"
#include "retort/architecture/hf_config.h"
#include "retort/io/model_directory.h"
#include "retort/pipeline/known_models.h"
#include "retort/text/tokenizer_conflicts.h"

namespace retort::pipeline {
namespace {

void tell(const std::vector<std::string>& notes, record::Observer& observer) {
  for (const auto& note : notes) observer.message(record::Level::warning, note);
}

}  // namespace

architecture::Config inspect_model(const base::Path& directory, record::Observer& observer) {
  std::vector<std::string> notes;
  const auto config = architecture::read_config(directory, &notes);
  const auto files = io::ModelDirectory::open(directory);
  architecture::check_tensors(config, files);
  (void)architecture::weight_dtype(config, files, &notes);
  std::ranges::move(architecture::notes_on_files(config, files), std::back_inserter(notes));
  std::ranges::move(text::tokenizer_conflicts(directory), std::back_inserter(notes));
  tell(notes, observer);
  return config;
}

void inspect_config(const recipe::Stage& stage, record::Observer& observer) {
  std::vector<std::string> notes;
  (void)starting_config(stage, &notes);
  tell(notes, observer);
}

architecture::Config inspect_shape(const base::Path& model, record::Observer& observer) {
  std::vector<std::string> notes;
  auto config = architecture::read_config(model, &notes);
  tell(notes, observer);
  return config;
}

}  // namespace retort::pipeline
