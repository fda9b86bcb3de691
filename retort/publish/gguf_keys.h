#pragma once
// What a GGUF file says of a decoder: its architecture, keys, and the tensors that positions need.

#include <string>
#include <vector>

#include "retort/architecture/config.h"
#include "retort/io/gguf_architecture.h"
#include "retort/io/gguf_write.h"

namespace retort::publish {

/// The architecture of llama.cpp that computes the family's blocks though they differ; each of them has an
/// MLP there. Null where there is none.
const io::GgufArchitecture* find_by_block(const architecture::Config& config);
/// The architecture under which llama.cpp computes what the family computes.  Throws ModelError where there
/// is none that Retort writes, and for blocks that differ where it takes none; `where` names the model.
const io::GgufArchitecture& gguf_architecture_of(const architecture::Config& config,
                                                 const std::string& where);

/// The keys of the decoder.  /// Source: llama.cpp b11549, conversion/ and gguf-py/gguf/constants.py.
io::GgufEntries gguf_keys(const architecture::Config& config, const io::GgufArchitecture& architecture,
                          const std::string& where);

/// That of the first block that has attention.
const architecture::Attention& attention_of(const architecture::Config& config);

/// A tensor by which angles are divided.
struct RopeDivisors {
  std::string name;
  std::vector<float> values;
};
std::vector<RopeDivisors> rope_divisors(const architecture::Config& config);

/// Throws ModelError unless `found`, which was read back from the file, computes what `wanted` does: GGUF has
/// no words for some decoders.  The error names the first difference.
void require_said(const architecture::Config& wanted, const architecture::Config& found,
                  const io::GgufArchitecture& architecture, const std::string& where);

}  // namespace retort::publish
