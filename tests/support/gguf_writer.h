#pragma once
// GGUF files for tests, sound or not: nothing is checked, and every count and place can be made to lie.

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace retort::test {

/// Little-endian.
template <typename Word>
std::string little_endian(Word word) {
  std::string bytes(sizeof word, '\0');
  std::memcpy(bytes.data(), &word, sizeof word);
  return bytes;
}

inline std::string gguf_text(std::string_view text) {
  return little_endian(std::uint64_t{text.size()}).append(text);
}

template <typename Value>
std::string bytes_of_values(const std::vector<Value>& values) {
  std::string bytes;
  for (const Value& value : values) bytes += little_endian(value);
  return bytes;
}

class GgufWriter {
 public:
  struct Tensor {
    std::string name;
    std::vector<std::uint64_t> extents;  ///< fastest first, as in the file
    std::uint32_t type = 0;
    std::string bytes;
    std::optional<std::uint64_t> offset = std::nullopt;
  };

  std::uint32_t version = 3;
  std::uint64_t alignment = 32;
  std::optional<std::uint64_t> claimed_tensors, claimed_keys;
  std::vector<Tensor> tensors;

  /// A value in the bytes of the file, type number included.
  void raw(const std::string& key, std::uint32_t type, const std::string& bytes) {
    metadata_.push_back(gguf_text(key) + little_endian(type) + bytes);
  }
  void number(const std::string& key, std::uint32_t value) { raw(key, 4, little_endian(value)); }
  void real(const std::string& key, float value) { raw(key, 6, little_endian(value)); }
  void flag(const std::string& key, bool value) { raw(key, 7, std::string(1, value ? '\1' : '\0')); }
  void text(const std::string& key, std::string_view value) { raw(key, 8, gguf_text(value)); }
  void texts(const std::string& key, const std::vector<std::string>& values) {
    std::string bytes = list_head(8, values.size());
    for (const auto& value : values) bytes += gguf_text(value);
    raw(key, 9, bytes);
  }
  void reals(const std::string& key, const std::vector<float>& values) {
    raw(key, 9, list_head(6, values.size()) + bytes_of_values(values));
  }
  void integers(const std::string& key, const std::vector<std::int32_t>& values) {
    raw(key, 9, list_head(5, values.size()) + bytes_of_values(values));
  }
  void tensor(std::string name, std::vector<std::uint64_t> extents, std::uint32_t type, std::string bytes) {
    tensors.push_back({std::move(name), std::move(extents), type, std::move(bytes)});
  }

  std::string bytes() const {
    std::string head = "GGUF" + little_endian(version) +
                       little_endian(claimed_tensors.value_or(tensors.size())) +
                       little_endian(claimed_keys.value_or(metadata_.size()));
    for (const auto& entry : metadata_) head += entry;
    std::string data;
    for (const auto& one : tensors) {
      head += gguf_text(one.name) + little_endian(static_cast<std::uint32_t>(one.extents.size()));
      for (const auto extent : one.extents) head += little_endian(extent);
      head += little_endian(one.type) + little_endian(one.offset.value_or(data.size()));
      data += one.bytes;
      pad(data);
    }
    pad(head);
    return head + data;
  }

 private:
  static std::string list_head(std::uint32_t type, std::size_t count) {
    return little_endian(type) + little_endian(std::uint64_t{count});
  }
  void pad(std::string& bytes) const { bytes.resize((bytes.size() + alignment - 1) / alignment * alignment); }

  std::vector<std::string> metadata_;
};

/// Metadata of a model: hidden size 4, two query heads and one key head of width 2, one block, MLP width 8.
inline GgufWriter tiny_gguf_metadata(const std::string& architecture = "llama") {
  GgufWriter file;
  file.text("general.architecture", architecture);
  file.number(architecture + ".block_count", 1);
  file.number(architecture + ".context_length", 64);
  file.number(architecture + ".embedding_length", 4);
  file.number(architecture + ".feed_forward_length", 8);
  file.number(architecture + ".attention.head_count", 2);
  file.number(architecture + ".attention.head_count_kv", 1);
  file.real(architecture + ".attention.layer_norm_rms_epsilon", 1e-5F);
  return file;
}

/// Values 0, 1, 2, ... of each tensor in f32.
inline void add_tiny_tensors(GgufWriter& file) {
  const auto add = [&](const std::string& name, std::vector<std::uint64_t> extents) {
    std::uint64_t count = 1;
    for (const auto extent : extents) count *= extent;
    std::vector<float> values;
    for (std::uint64_t i = 0; i < count; ++i) values.push_back(static_cast<float>(i));
    file.tensor(name, std::move(extents), 0, bytes_of_values(values));
  };
  add("token_embd.weight", {4, 6});
  add("output_norm.weight", {4});
  add("blk.0.attn_norm.weight", {4});
  add("blk.0.attn_q.weight", {4, 4});
  add("blk.0.attn_k.weight", {4, 2});
  add("blk.0.attn_v.weight", {4, 2});
  add("blk.0.attn_output.weight", {4, 4});
  add("blk.0.ffn_norm.weight", {4});
  add("blk.0.ffn_gate.weight", {4, 8});
  add("blk.0.ffn_up.weight", {4, 8});
  add("blk.0.ffn_down.weight", {8, 4});
}

/// A byte-level tokenizer of five tokens, for text of the letters a and b.
inline void add_tiny_tokenizer(GgufWriter& file) {
  file.text("tokenizer.ggml.model", "gpt2");
  file.text("tokenizer.ggml.pre", "gpt-2");
  file.texts("tokenizer.ggml.tokens", {"<s>", "a", "b", "ab", "</s>"});
  file.integers("tokenizer.ggml.token_type", {3, 1, 1, 1, 3});
  file.texts("tokenizer.ggml.merges", {"a b"});
  file.number("tokenizer.ggml.bos_token_id", 0);
  file.number("tokenizer.ggml.eos_token_id", 4);
}

}  // namespace retort::test
