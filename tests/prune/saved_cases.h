#pragma once
// Models that a test saves for transformers to load, each with what it makes of a text here.

#include <filesystem>
#include <stdexcept>
#include <vector>

#include "retort/architecture/hf_config.h"
#include "retort/io/safetensors.h"
#include "support/models_for_tests.h"
#include "support/outside_data.h"
#include "support/random_text.h"
#include "support/tolerance.h"

namespace retort::test {

inline std::filesystem::path saved(const char* folder) {
  const auto directory = directory_of("RETORT_SAVED_MODELS");
  if (directory.empty())
    throw std::runtime_error("RETORT_SAVED_MODELS is not set; run the tests through ctest.");
  std::filesystem::remove_all(directory / folder);
  std::filesystem::create_directories(directory / folder);
  return directory / folder;
}

// A document of each length, in one sequence.
inline std::vector<calibrate::SourceText> documents(std::int64_t vocab_size,
                                                    const std::vector<std::int32_t>& lengths) {
  base::Random random(5, 7);
  std::int32_t all = 0;
  std::vector<std::int32_t> starts;
  for (const auto length : lengths) {
    starts.push_back(all);
    all += length;
  }
  auto sequence = random_sequence(vocab_size, static_cast<std::size_t>(all), random);
  sequence.starts = starts;
  return {{"text", {sequence}}};
}

inline std::vector<calibrate::SourceText> one_document(std::int64_t vocab_size) {
  return documents(vocab_size, {24});
}

// Ids, and what a model makes of them here.
inline void save_logits(const model::Weights& weights, const std::filesystem::path& directory) {
  const auto sources = one_document(weights.config.vocab_size);
  const auto batch = calibrate::calibration_batches(sources, weights.config, at::kCPU).front();
  const auto logits_NV = plain_logits(weights, batch).contiguous();
  EXPECT_GT(logits_NV.abs().max().item<double>(), 1) << "too small to show a difference";
  const std::span bytes(static_cast<const std::byte*>(logits_NV.const_data_ptr()), logits_NV.nbytes());
  const std::vector tensors{io::tensor_of_bytes("logits", io::Dtype::f32, logits_NV.sizes().vec(), bytes)};
  io::write_safetensors(directory / "logits.safetensors", tensors);
  base::write_file_atomically(
      directory / "case.json",
      base::Json{{"ids", sources[0].sequences[0].ids}, {"tolerance", kLogits}}.dump());
}

// The model, with ids and what it makes of them here.
inline void save_case(const model::Weights& weights, const std::filesystem::path& directory) {
  std::filesystem::create_directories(directory);
  model::save_model(weights, directory / "model", {}, {});
  save_logits(model::load_weights(directory / "model", at::kFloat, at::kCPU), directory);
}

}  // namespace retort::test
