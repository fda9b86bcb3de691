#include "retort/publish/rows.h"

#include <algorithm>
#include <vector>

#include "retort/base/error.h"
#include "retort/io/gguf_quantise.h"
#include "retort/io/quote.h"

namespace retort::publish {
namespace {

constexpr std::size_t kRowsAtOnce = 64;

// llama.cpp turns neighbouring rows of a head, Hugging Face those half a head apart: row r of the file is
// this row of Hugging Face's order.
std::size_t row_in_model(std::size_t row, std::size_t rows_of_head) {
  if (rows_of_head == 0) return row;
  const std::size_t first = row / rows_of_head * rows_of_head, within = row % rows_of_head;
  return first + within % 2 * (rows_of_head / 2) + within / 2;
}

void read_row(const io::TensorView& view, std::size_t row, std::span<float> values) {
  const std::size_t bytes = values.size() * io::item_bytes(view.dtype);
  io::dequantise(ggml_type_of(view.dtype), view.bytes.subspan(row * bytes, bytes), values);
}

// Calls with the values of a few rows at a time, in the order of the file.
void for_rows(const io::TensorView& view, const RowChange& change,
              const std::function<void(std::span<float>)>& visit) {
  const auto cols = static_cast<std::size_t>(view.shape.back());
  const std::size_t rows = view.bytes.size() / (cols * io::item_bytes(view.dtype));
  std::vector<float> values(std::min(rows, kRowsAtOnce) * cols);
  for (std::size_t first = 0; first < rows; first += kRowsAtOnce) {
    const std::size_t count = std::min(kRowsAtOnce, rows - first);
    for (std::size_t i = 0; i < count; ++i)
      read_row(view, row_in_model(first + i, change.rows_of_head), std::span(values).subspan(i * cols, cols));
    visit(std::span(values).first(count * cols));
  }
}

void round(io::GgmlType type, float added, std::span<float> values, std::span<std::byte> stored) {
  if (added != 0)  // a zero keeps its sign
    for (float& value : values) value += added;
  io::quantise(type, values, stored);
}

// Blocks of `like` where they have the values; returns how many values these are.
std::int64_t copy_or_round(io::GgmlType type, float added, std::span<float> values, StoredBlocks& like,
                           std::span<std::byte> stored) {
  const io::GgmlBlock block = io::block_of(type);
  const std::size_t unit = like.unit(), unit_bytes = unit / block.values * block.bytes;
  std::int64_t kept = 0;
  for (std::size_t at = 0, byte = 0; at < values.size(); at += unit, byte += unit_bytes) {
    const auto found = like.find(values.subspan(at, unit));
    if (found.empty()) {
      round(type, added, values.subspan(at, unit), stored.subspan(byte, unit_bytes));
      continue;
    }
    std::ranges::copy(found, stored.begin() + static_cast<std::ptrdiff_t>(byte));
    kept += static_cast<std::int64_t>(unit);
  }
  return kept;
}

std::int64_t write_rows(const io::TensorView& view, const RowChange& change, io::GgmlType type,
                        StoredBlocks* like, const io::ByteSink& sink) {
  const io::GgmlBlock block = io::block_of(type);
  std::vector<std::byte> stored;
  std::int64_t kept = 0;
  for_rows(view, change, [&](std::span<float> values) {
    stored.resize(values.size() / block.values * block.bytes);
    if (like)
      kept += copy_or_round(type, change.added, values, *like, stored);
    else
      round(type, change.added, values, stored);
    sink(stored);
  });
  return kept;
}

}  // namespace

io::GgmlType ggml_type_of(io::Dtype dtype) {
  if (dtype == io::Dtype::f32) return io::GgmlType::f32;
  base::ensure(dtype == io::Dtype::f16 || dtype == io::Dtype::bf16, "weights are of a floating type");
  return dtype == io::Dtype::f16 ? io::GgmlType::f16 : io::GgmlType::bf16;
}

std::int64_t write_rows(const io::WeightFiles& weights, const std::string& name, const RowChange& change,
                        io::GgmlType type, StoredBlocks* like, const io::ByteSink& sink) try {
  return write_rows(weights.find(name), change, type, like, sink);
} catch (const base::ModelError& error) {
  throw base::ModelError(base::join("tensor ", io::quote(name), ": ", error.what()));
}

bool are_stored(const io::WeightFiles& weights, const std::string& name, const RowChange& change,
                StoredBlocks& like) {
  bool all = true;
  for_rows(weights.find(name), change, [&](std::span<float> values) {
    for (std::size_t at = 0; all && at < values.size(); at += like.unit())
      all = !like.find(values.subspan(at, like.unit())).empty();
  });
  return all;
}

}  // namespace retort::publish
