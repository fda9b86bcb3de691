#include "retort/pipeline/inspect_model.h"

#include "retort/architecture/checkpoint.h"
#include "retort/architecture/hf_config.h"
#include "retort/io/model_directory.h"

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
  tell(notes, observer);
  return config;
}

void inspect_config(const base::Path& file, record::Observer& observer) {
  std::vector<std::string> notes;
  (void)architecture::parse_hf_config(base::read_file(file, std::size_t{1} << 20), file.string(), &notes);
  tell(notes, observer);
}

}  // namespace retort::pipeline
