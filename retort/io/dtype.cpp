#include "retort/io/dtype.h"

#include <array>

namespace retort::io {
namespace {

struct Row {
  Dtype dtype;
  std::size_t bytes;
  std::string_view name;
  std::string_view long_name;
};

constexpr std::array<Row, 10> kRows{{
    {Dtype::f64, 8, "F64", "float64"},
    {Dtype::f32, 4, "F32", "float32"},
    {Dtype::f16, 2, "F16", "float16"},
    {Dtype::bf16, 2, "BF16", "bfloat16"},
    {Dtype::i64, 8, "I64", "int64"},
    {Dtype::i32, 4, "I32", "int32"},
    {Dtype::i16, 2, "I16", "int16"},
    {Dtype::i8, 1, "I8", "int8"},
    {Dtype::u8, 1, "U8", "uint8"},
    {Dtype::boolean, 1, "BOOL", "bool"},
}};

const Row& row(Dtype dtype) {
  return kRows[static_cast<std::size_t>(dtype)];
}

std::optional<Dtype> lookup(std::string_view text, std::string_view Row::*column) {
  for (const Row& candidate : kRows)
    if (candidate.*column == text) return candidate.dtype;
  return std::nullopt;
}

}  // namespace

std::size_t item_bytes(Dtype dtype) {
  return row(dtype).bytes;
}
std::string_view name(Dtype dtype) {
  return row(dtype).name;
}
std::optional<Dtype> parse_dtype(std::string_view text) {
  return lookup(text, &Row::name);
}
std::string_view long_name(Dtype dtype) {
  return row(dtype).long_name;
}
std::optional<Dtype> parse_long_dtype(std::string_view text) {
  return lookup(text, &Row::long_name);
}

}  // namespace retort::io
