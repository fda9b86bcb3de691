#include "retort/publish/stored_blocks.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <string_view>

#include "retort/base/hash.h"

namespace retort::publish {
namespace {

std::uint64_t hash_of(std::span<const float> values) {
  return base::hash64({reinterpret_cast<const char*>(values.data()), values.size_bytes()});
}

// The nearest value of 16 bits, of two the even one.
float as_bf16(float value) {
  if (!std::isfinite(value)) return value;
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return std::bit_cast<float>((bits + 0x7FFFU + (bits >> 16 & 1U)) & 0xFFFF0000U);
}

float as_in_model(float value, const ValuesOfModel& model) {
  if (model.added != 0) value -= model.added;  // a zero keeps its sign
  if (model.dtype == io::Dtype::f32) return value;
  return model.dtype == io::Dtype::bf16 ? as_bf16(value) : io::half_to_float(io::float_to_half(value));
}

}  // namespace

StoredBlocks::StoredBlocks(io::GgmlType type, std::span<const std::byte> bytes, std::size_t cols,
                           ValuesOfModel values)
    : type_(type), bytes_(bytes), model_(values) {
  const io::GgmlBlock block = io::block_of(type);
  unit_ = io::is_quantised(type) ? block.values : cols;
  unit_bytes_ = unit_ / block.values * block.bytes;
  one_.resize(unit_);
}

std::span<const std::byte> StoredBlocks::at(std::size_t number) const {
  return bytes_.subspan(number * unit_bytes_, unit_bytes_);
}

void StoredBlocks::read(std::size_t number) {
  io::dequantise(type_, at(number), one_);
  for (float& value : one_) value = as_in_model(value, model_);
}

bool StoredBlocks::has_values(std::size_t number, std::span<const float> values) {
  read(number);
  return std::memcmp(one_.data(), values.data(), values.size_bytes()) == 0;
}

void StoredBlocks::index_all() {
  by_hash_.emplace();
  for (std::size_t number = 0; number < size(); ++number) {
    read(number);
    by_hash_->emplace(hash_of(one_), number);
  }
}

std::span<const std::byte> StoredBlocks::find(std::span<const float> values) {
  if (!std::ranges::all_of(values, [](float value) { return std::isfinite(value); })) return {};
  if (next_ < size() && has_values(next_, values)) return at(next_++);
  if (!by_hash_) index_all();
  const auto found = by_hash_->find(hash_of(values));
  if (found == by_hash_->end() || !has_values(found->second, values)) return {};
  next_ = found->second + 1;
  return at(found->second);
}

}  // namespace retort::publish
