#pragma once
// A model directory whose values can be told apart.

#include <map>
#include <span>
#include <string>
#include <vector>

#include "retort/architecture/hf_config.h"
#include "retort/architecture/layout.h"
#include "retort/base/files.h"
#include "retort/io/model_directory.h"

namespace retort::test {

/// Each stored tensor as 1, 2, 3, ... in the order of its values.
inline void write_counted(const architecture::Config& config, const base::Path& directory) {
  std::map<std::string, std::vector<float>> values;
  for (const auto& unit : architecture::make_layout(config).units)
    for (const auto& tensor : unit.tensors) {
      auto& stored = values[tensor.stored.name];
      for (std::int64_t i = 0; i < tensor.numel; ++i) stored.push_back(static_cast<float>(stored.size() + 1));
    }
  std::vector<io::TensorToWrite> tensors;
  for (const auto& unit : architecture::make_layout(config).units)
    for (const auto& tensor : unit.tensors)
      if (tensor.stored.first_row == 0)
        tensors.push_back(io::tensor_of_bytes(tensor.stored.name, io::Dtype::f32, tensor.stored_shape(),
                                              std::as_bytes(std::span(values.at(tensor.stored.name)))));
  base::write_file_atomically(directory / "config.json",
                              architecture::hf_config_json(config, {io::Dtype::f32, {}}));
  io::write_weights(directory, tensors, {{"made", "by counting"}});
}

}  // namespace retort::test
