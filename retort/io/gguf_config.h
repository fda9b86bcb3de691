#pragma once
// config.json of a GGUF file's model, made from its metadata.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "retort/io/dtype.h"
#include "retort/io/gguf_architecture.h"
#include "retort/io/gguf_metadata.h"

namespace retort::io {

/// Values that a list in config.json is made of: kinds of layers, or what angles are divided by.
inline constexpr std::size_t kMaxGgufListed = 65'536;

/// What the tensors of the file say about the model.
struct GgufShape {
  std::int64_t vocab_size = 0;
  bool tied = false;                      ///< the head is the embedding
  Dtype dtype = Dtype::bf16;              ///< in which a model made from this one is saved
  std::vector<float> rope_divisors = {};  ///< of the angles of a scaled rotary embedding; none: there is none
  std::vector<float> short_divisors = {}, long_divisors = {};  ///< those of a longrope
};

/// Throws ModelError for an architecture that is not read.
const GgufArchitecture& gguf_architecture(const MetadataReader& metadata);

/// Where the scaled rotary embedding of Llama 3.1 begins and ends: low_freq_factor, high_freq_factor and the
/// tokens of the original context.
struct Llama3Bounds {
  double low = 1, high = 4, context = 8192;
};
/// What an angle per position is divided by.
double llama3_divisor(double angle, double factor, const Llama3Bounds& bounds);

/// Heads of a model; rows of query and key weights are ordered by them.
struct GgufHeads {
  std::vector<std::int64_t> query, key;  ///< of each block; 0: it has no attention
};
GgufHeads read_gguf_heads(const MetadataReader& metadata);

/// The text of config.json.  Throws ModelError, by name for metadata that changes the mathematics and is not
/// honoured.
std::string gguf_config_json(const MetadataReader& metadata, const GgufShape& shape);

}  // namespace retort::io
