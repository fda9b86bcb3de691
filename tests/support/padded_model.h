#pragma once
// A model directory padded until all its blocks are alike.

#include <filesystem>

#include "retort/architecture/checkpoint.h"
#include "retort/architecture/hf_config.h"
#include "retort/base/files.h"
#include "retort/io/model_directory.h"
#include "retort/publish/hf_directory.h"
#include "retort/publish/padded.h"

namespace retort::test {

inline void write_padded(const std::filesystem::path& from, const std::filesystem::path& to) {
  const auto config = architecture::read_config(from);
  const auto files = io::ModelDirectory::open(from);
  const publish::PaddedWeights weights(config, publish::padded(config), files);
  base::make_directories(to);
  publish::write_hf_directory(weights, architecture::weight_dtype(config, files), from, to);
}

}  // namespace retort::test
