#pragma once
// Calibration text: what each source of it holds, cut into batches of whole sequences that pass the model
// together.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "retort/architecture/config.h"
#include "retort/data/sequence.h"
#include "retort/model/packed_text.h"
#include "retort/model/tokens.h"

namespace retort::calibrate {

/// Tokens that pass the model together, where nothing else is asked for.
inline constexpr std::int64_t kCalibrationBatchTokens = 2048;

/// Text of one source; results are averaged over sources, each with the same weight.
struct SourceText {
  std::string name;
  std::vector<data::Sequence> sequences;
};

/// Sequences of one source that pass the model together.
struct Batch : model::PackedText {
  std::size_t source = 0;
  model::TokenLayout layout;
  std::vector<bool> goes_on;  ///< per document of the layout: it began in an earlier sequence
};

/// Which sequences make a batch.
struct BatchPlace {
  std::size_t source = 0, first = 0, count = 0;
  std::int64_t tokens = 0;
};

/// Batches of about `batch_tokens` tokens, in the order of sources and sequences.
/// Throws DataError: no source, a source without a target, an id outside the vocabulary.
std::vector<BatchPlace> batch_places(const std::vector<SourceText>& sources, std::int64_t vocab_size,
                                     std::int64_t batch_tokens);
Batch make_batch(const architecture::Config& config, const std::vector<SourceText>& sources,
                 const BatchPlace& place, at::Device device);
/// All of them at once.
std::vector<Batch> calibration_batches(const std::vector<SourceText>& sources,
                                       const architecture::Config& config, at::Device device,
                                       std::int64_t batch_tokens = kCalibrationBatchTokens);
/// Those of a rank, which lie beside each other in the text; maybe none.
std::vector<Batch> batches_of_rank(const std::vector<SourceText>& sources, const architecture::Config& config,
                                   at::Device device, int rank, int ranks);

std::int64_t num_tokens(const std::vector<Batch>& batches);

/// What makes text this text and no other, documents and all.
std::string text_fingerprint(const std::vector<SourceText>& sources);

}  // namespace retort::calibrate
