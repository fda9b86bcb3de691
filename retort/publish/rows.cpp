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

void read_row(const io::TensorView& view, std::size_t row, float added, std::span<float> values) {
  const std::size_t bytes = values.size() * io::item_bytes(view.dtype);
  io::dequantise(ggml_type_of(view.dtype), view.bytes.subspan(row * bytes, bytes), values);
  if (added == 0) return;  // a zero keeps its sign
  for (float& value : values) value += added;
}

void write_rows(const io::TensorView& view, const RowChange& change, io::GgmlType type,
                const io::ByteSink& sink) {
  const auto cols = static_cast<std::size_t>(view.shape.back());
  const std::size_t rows = view.bytes.size() / (cols * io::item_bytes(view.dtype));
  const io::GgmlBlock block = io::block_of(type);
  std::vector<float> values(std::min(rows, kRowsAtOnce) * cols);
  std::vector<std::byte> stored(values.size() / block.values * block.bytes);
  for (std::size_t first = 0; first < rows; first += kRowsAtOnce) {
    const std::size_t count = std::min(kRowsAtOnce, rows - first);
    for (std::size_t i = 0; i < count; ++i)
      read_row(view, row_in_model(first + i, change.rows_of_head), change.added,
               std::span(values).subspan(i * cols, cols));
    const auto part = std::span(stored).first(count * cols / block.values * block.bytes);
    io::quantise(type, std::span(values).first(count * cols), part);
    sink(part);
  }
}

}  // namespace

io::GgmlType ggml_type_of(io::Dtype dtype) {
  if (dtype == io::Dtype::f32) return io::GgmlType::f32;
  base::ensure(dtype == io::Dtype::f16 || dtype == io::Dtype::bf16, "weights are of a floating type");
  return dtype == io::Dtype::f16 ? io::GgmlType::f16 : io::GgmlType::bf16;
}

void write_rows(const io::WeightFiles& weights, const std::string& name, const RowChange& change,
                io::GgmlType type, const io::ByteSink& sink) try {
  write_rows(weights.find(name), change, type, sink);
} catch (const base::ModelError& error) {
  throw base::ModelError(base::join("tensor ", io::quote(name), ": ", error.what()));
}

}  // namespace retort::publish
