#pragma once
// Sequences of token ids joined into one row, so that they pass a block together.
//
// Shape legend: N tokens of all sequences of a batch, one after the other.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

namespace retort::model {

/// One sequence as its tokenized text gives it.
struct TextSequence {
  std::span<const std::int32_t> ids, targets;  ///< target -1: not counted
  std::span<const std::int32_t> starts;        ///< where a document begins, from 0 and rising
  std::int64_t number = 0;                     ///< in the stream that it comes from
};

struct PackedText {
  at::Tensor ids_N, targets_N;       ///< int64; target -1: not counted
  std::vector<std::int64_t> bounds;  ///< first token of each sequence; last N
  std::vector<std::int64_t> starts;  ///< first token of each segment that attention stays in; last N
  std::int64_t num_targets = 0;
  std::vector<std::int64_t> numbers = {};  ///< of each sequence in its stream
  bool written = false;  ///< by the model that learns: its targets are what it wrote, not what is right

  std::int64_t tokens() const { return bounds.back(); }
  std::int64_t sequences() const { return std::ssize(bounds) - 1; }
  /// First token of each sequence.
  std::span<const std::int64_t> sequence_starts() const { return std::span(bounds).first(bounds.size() - 1); }
};

/// Sequences one behind the other, on the device.
PackedText packed_text(std::span<const TextSequence> sequences, at::Device device);

/// The same of any sequences that have `ids`, `targets` and `starts`, and maybe a `number`.
template <typename Sequences>
PackedText packed_text(const Sequences& sequences, at::Device device) {
  std::vector<TextSequence> parts;
  for (const auto& sequence : sequences) {
    parts.push_back({sequence.ids, sequence.targets, sequence.starts});
    if constexpr (requires { sequence.number; }) parts.back().number = sequence.number;
  }
  return packed_text(std::span<const TextSequence>(parts), device);
}

}  // namespace retort::model
