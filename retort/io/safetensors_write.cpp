// Writing safetensors, byte for byte as the reference implementation does for the same tensors.

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include "retort/base/error.h"
#include "retort/base/json.h"
#include "retort/io/quote.h"
#include "retort/io/safetensors.h"

namespace retort::io {
namespace {

using base::InternalError;
using base::Json;
using base::require;

constexpr std::size_t kHeaderAlignment = 8;

// Largest items first, in the order of the reference, so that every tensor stays aligned to its item.
int alignment_rank(Dtype dtype) {
  constexpr std::array kOrder{Dtype::i64, Dtype::f64, Dtype::f32, Dtype::i32, Dtype::bf16,
                              Dtype::f16, Dtype::i16, Dtype::i8,  Dtype::u8,  Dtype::boolean};
  return static_cast<int>(std::find(kOrder.begin(), kOrder.end(), dtype) - kOrder.begin());
}

std::vector<const TensorToWrite*> file_order(std::span<const TensorToWrite> tensors) {
  std::vector<const TensorToWrite*> order;
  for (const TensorToWrite& tensor : tensors) order.push_back(&tensor);
  std::sort(order.begin(), order.end(), [](const TensorToWrite* a, const TensorToWrite* b) {
    return std::pair(alignment_rank(a->dtype), std::string_view(a->name)) <
           std::pair(alignment_rank(b->dtype), std::string_view(b->name));
  });
  return order;
}

std::string header_text(const std::vector<const TensorToWrite*>& order,
                        const std::map<std::string, std::string>& metadata) {
  Json header = Json::object();
  std::map<std::string, std::string> all{{"format", "pt"}};
  for (const auto& [key, value] : metadata) all[key] = value;
  header["__metadata__"] = Json(all);
  std::size_t begin = 0;
  for (const TensorToWrite* tensor : order) {
    require<InternalError>(!header.contains(tensor->name) && !tensor->name.empty(),
                           "write_safetensors: tensor ", quote(tensor->name),
                           " is given twice or may not be called so.");
    const std::size_t end = begin + tensor_bytes(tensor->name, tensor->dtype, tensor->shape);
    Json entry;
    entry["dtype"] = name(tensor->dtype);
    entry["shape"] = tensor->shape;
    entry["data_offsets"] = {begin, end};
    header[tensor->name] = std::move(entry);
    begin = end;
  }
  std::string text = header.dump();
  text.resize((text.size() + kHeaderAlignment - 1) / kHeaderAlignment * kHeaderAlignment, ' ');
  return text;
}

void write_tensor(base::AtomicFile& file, const TensorToWrite& tensor) {
  const std::size_t expected = tensor_bytes(tensor.name, tensor.dtype, tensor.shape);
  std::size_t produced = 0;
  tensor.produce([&](std::span<const std::byte> piece) {
    produced += piece.size();
    require<InternalError>(produced <= expected, "write_safetensors: tensor ", quote(tensor.name),
                           " gives more than the announced ", expected, " bytes.");
    file.write(piece.data(), piece.size());
  });
  require<InternalError>(produced == expected, "write_safetensors: tensor ", quote(tensor.name), " gives ",
                         produced, " bytes, expected ", expected, ".");
}

}  // namespace

TensorToWrite tensor_of_bytes(std::string name, Dtype dtype, std::vector<std::int64_t> shape,
                              std::span<const std::byte> bytes) {
  return {std::move(name), dtype, std::move(shape), [bytes](const ByteSink& sink) { sink(bytes); }};
}

void write_safetensors(const base::Path& path, std::span<const TensorToWrite> tensors,
                       const std::map<std::string, std::string>& metadata) {
  const auto order = file_order(tensors);
  const std::string header = header_text(order, metadata);
  std::array<unsigned char, 8> length{};
  for (std::size_t i = 0; i < length.size(); ++i)
    length[i] = static_cast<unsigned char>(std::uint64_t{header.size()} >> (8 * i));
  base::AtomicFile file(path);
  file.write(length.data(), length.size());
  file.write(header);
  for (const TensorToWrite* tensor : order) write_tensor(file, *tensor);
  file.commit();
}

}  // namespace retort::io
