#include "retort/publish/hf_directory.h"

#include <vector>

#include "retort/architecture/hf_config.h"
#include "retort/publish/rows.h"

namespace retort::publish {
namespace {

io::TensorToWrite to_write(const PaddedWeights& weights, const std::string& name, io::Dtype dtype) {
  const auto shape = weights.header(name).shape;
  return {name, dtype, {shape.begin(), shape.end()}, [&weights, name, dtype](const io::ByteSink& sink) {
            (void)write_rows(weights, name, {}, ggml_type_of(dtype), nullptr, sink);
          }};
}

}  // namespace

void write_hf_directory(const PaddedWeights& weights, io::Dtype dtype, const base::Path& from,
                        const base::Path& directory) {
  std::vector<io::TensorToWrite> tensors;
  for (const auto& name : weights.names()) tensors.push_back(to_write(weights, name, dtype));
  base::write_file_atomically(
      directory / "config.json",
      architecture::hf_config_json(weights.config(), {.dtype = dtype, .additional = {}}));
  (void)io::write_weights(directory, tensors);
  io::copy_files(io::accompanying_files(from), directory);
}

}  // namespace retort::publish
