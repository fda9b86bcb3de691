#include "retort/io/gguf_model.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>

#include "retort/base/error.h"
#include "retort/io/gguf_names.h"
#include "retort/io/gguf_parts.h"
#include "retort/io/quote.h"

namespace retort::io {
namespace {

using base::ModelError;
using base::Path;
using base::require;

constexpr const char* kEmbedding = "model.embed_tokens.weight";
constexpr const char* kHead = "lm_head.weight";

Dtype value_dtype(GgmlType type) {
  return type == GgmlType::f16 ? Dtype::f16 : type == GgmlType::bf16 ? Dtype::bf16 : Dtype::f32;
}

// A norm's weight of which the file holds 1 + w.
TensorView less_one(const GgufTensor& tensor, std::span<const std::byte> stored) {
  const auto made = std::make_shared<std::vector<std::byte>>(stored.begin(), stored.end());
  for (std::size_t at = 0; at < made->size(); at += sizeof(float)) {
    float value = 0;
    std::memcpy(&value, made->data() + at, sizeof value);
    value -= 1;
    std::memcpy(made->data() + at, &value, sizeof value);
  }
  return {Dtype::f32, tensor.shape, *made, made};
}

// llama.cpp rotates neighbouring rows of a head, Hugging Face those half a head apart: row r of Hugging
// Face's order is this row of the file.
std::size_t row_in_file(std::size_t row, std::size_t rows_of_head) {
  const std::size_t first = row / rows_of_head * rows_of_head, within = row % rows_of_head;
  const std::size_t half = rows_of_head / 2;
  return first + within % half * 2 + within / half;
}

// By which the rows of a tensor are ordered anew; 0: they stay.
std::int64_t heads_of(const GgufHeads& heads, const std::string& name) {
  const bool query = name.ends_with(".attn_q.weight"), key = name.ends_with(".attn_k.weight");
  const auto block = gguf_block(name);
  if ((!query && !key) || !block || *block >= heads.query.size()) return 0;
  return (query ? heads.query : heads.key)[*block];
}

}  // namespace

GgufModel GgufModel::open(const Path& path) {
  GgufModel model(open_gguf_parts(path));
  model.where_ = path.string();
  model.add_tensors();
  return model;
}

void GgufModel::add_tensors() {
  const GgufHeads heads = read_gguf_heads(reader());
  const GgufArchitecture& architecture = gguf_architecture(reader());
  const bool reordered = architecture.rows_reordered;
  for (std::size_t part = 0; part < parts_.size(); ++part)
    for (const auto& [name, tensor] : parts_[part].tensors()) {
      if (std::vector<float>* divisors = divisors_in(name)) {
        *divisors = read_divisors(name, part, tensor);
        continue;
      }
      Place here{part, tensor, reordered ? heads_of(heads, name) : 0,
                 architecture.norms_plus_one && name.ends_with("norm.weight")};
      const bool rows =
          here.heads == 0 || (tensor.shape.size() == 2 && tensor.shape.front() % (2 * here.heads) == 0);
      require<ModelError>(rows, where_, ": tensor ", quote(name), " has ", tensor.shape.front(),
                          " rows, expected an even number of them for each of ", here.heads,
                          " heads; convert the model again.");
      require<ModelError>(!here.plus_one || tensor.type == GgmlType::f32, where_, ": tensor ", quote(name),
                          " has type ", io::name(tensor.type),
                          ", expected F32 as of every norm; convert the model again.");
      const bool fresh = places_.emplace(hugging_face_name(architecture, name), std::move(here)).second;
      require<ModelError>(fresh, where_, ": tensor ", quote(name),
                          " stands in two parts; give parts of one model.");
    }
  require<ModelError>(
      contains(kEmbedding) && place(kEmbedding).tensor.shape.size() == 2, where_,
      ": has no tensor \"token_embd.weight\" of two dimensions, expected the weights of a model; "
      "convert it again.");
}

// No tensors of Hugging Face: what the angles of positions are divided by.
std::vector<float>* GgufModel::divisors_in(std::string_view name) {
  if (name == "rope_freqs.weight") return &rope_divisors_;
  if (name == "rope_factors_short.weight") return &short_divisors_;
  return name == "rope_factors_long.weight" ? &long_divisors_ : nullptr;
}

std::vector<float> GgufModel::read_divisors(std::string_view name, std::size_t part,
                                            const GgufTensor& tensor) const {
  require<ModelError>(tensor.type == GgmlType::f32 && tensor.shape.size() == 1 && tensor.shape.front() > 0,
                      where_, ": tensor ", quote(name), " has type ", io::name(tensor.type),
                      ", expected one row of F32; convert the model again.");
  require<ModelError>(tensor.shape.front() <= std::int64_t{kMaxGgufListed}, where_, ": tensor ", quote(name),
                      " has ", tensor.shape.front(), " values, expected at most ", kMaxGgufListed,
                      "; convert the model again.");
  const auto bytes = parts_[part].bytes(tensor);
  std::vector<float> divisors(bytes.size() / sizeof(float));
  std::memcpy(divisors.data(), bytes.data(), divisors.size() * sizeof(float));
  return divisors;
}

const GgufModel::Place& GgufModel::place(std::string_view name) const {
  const auto found = places_.find(name);
  require<ModelError>(found != places_.end(), where_, ": has no tensor ", quote(name), ".");
  return found->second;
}

// Blocks of integers become bf16.  Beside half-precision matrices the norms are F32 in every file.
Dtype GgufModel::saved_dtype() const {
  const auto any = [this](auto&& is) {
    return std::any_of(places_.begin(), places_.end(),
                       [&](const auto& entry) { return is(entry.second.tensor.type); });
  };
  if (any(is_quantised) || any([](GgmlType type) { return type == GgmlType::bf16; })) return Dtype::bf16;
  return any([](GgmlType type) { return type == GgmlType::f16; }) ? Dtype::f16 : Dtype::f32;
}

std::string GgufModel::config_text() const {
  return gguf_config_json(reader(), {.vocab_size = place(kEmbedding).tensor.shape.front(),
                                     .tied = !contains(kHead),
                                     .dtype = saved_dtype(),
                                     .rope_divisors = rope_divisors_,
                                     .short_divisors = short_divisors_,
                                     .long_divisors = long_divisors_});
}

std::vector<std::string> GgufModel::names() const {
  std::vector<std::string> all;
  for (const auto& [name, place] : places_) all.push_back(name);
  return all;
}

TensorHeader GgufModel::header(std::string_view name) const {
  const GgufTensor& tensor = place(name).tensor;
  return {value_dtype(tensor.type), tensor.shape, is_quantised(tensor.type)};
}

TensorView GgufModel::find(std::string_view name) const {
  const auto& [part, tensor, heads, plus_one] = place(name);
  parts_[part].check_unchanged();
  const auto stored = parts_[part].bytes(tensor);
  const bool blocks = is_quantised(tensor.type);
  const Dtype dtype = value_dtype(tensor.type);
  if (plus_one) return less_one(tensor, stored);
  if (!blocks && heads == 0) return {dtype, tensor.shape, stored, {}};

  const auto cols = static_cast<std::size_t>(tensor.shape.back());
  const std::size_t stored_row = cols / block_of(tensor.type).values * block_of(tensor.type).bytes;
  const std::size_t rows = stored.size() / stored_row, row_bytes = cols * item_bytes(dtype);
  const std::size_t rows_of_head = heads > 0 ? rows / static_cast<std::size_t>(heads) : 0;
  const auto made = std::make_shared<std::vector<std::byte>>(rows * row_bytes);
  std::vector<float> values(blocks ? cols : 0);
  for (std::size_t row = 0; row < rows; ++row) {
    const auto from =
        stored.subspan((heads > 0 ? row_in_file(row, rows_of_head) : row) * stored_row, stored_row);
    if (blocks) dequantise(tensor.type, from, values);
    std::memcpy(made->data() + row * row_bytes,
                blocks ? static_cast<const void*>(values.data()) : from.data(), row_bytes);
  }
  return {dtype, tensor.shape, *made, made};
}

std::map<std::string, std::string> GgufModel::metadata() const {
  std::map<std::string, std::string> said;
  for (const auto& [key, value] : parts_.front().metadata())
    if (key.starts_with("general.") && !value.is_array())
      said[key] = value.is_string() ? value.get<std::string>() : value.dump();
  return said;
}

std::size_t GgufModel::total_bytes() const {
  std::size_t total = 0;
  for (const auto& [name, place] : places_) total += place.tensor.size;
  return total;
}

StoredTypes GgufModel::stored_types() const {
  StoredTypes types;
  for (const auto& [hugging_face, place] : places_) {
    std::int64_t values = 1;
    for (const std::int64_t extent : place.tensor.shape) values *= extent;
    types[std::string(io::name(place.tensor.type))] += values;
  }
  return types;
}

std::vector<Path> GgufModel::paths() const {
  std::vector<Path> files;
  for (const GgufFile& part : parts_) files.push_back(part.path());
  return files;
}

}  // namespace retort::io
