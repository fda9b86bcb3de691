#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <span>
#include <utility>

#include "retort/architecture/checkpoint.h"
#include "retort/base/error.h"
#include "retort/base/index.h"
#include "retort/io/quote.h"
#include "retort/publish/padded.h"

namespace retort::publish {
namespace {

using architecture::Tensor;
using base::to_size;

// A row of a vector is a value.
std::size_t row_bytes(const Tensor& tensor, std::size_t item_bytes) {
  return item_bytes * (tensor.is_matrix() ? to_size(tensor.cols()) : 1);
}

// Rows of one stored tensor to the beginning of those of another, whose rows are as long or longer.
void copy_rows(const Tensor& from, std::span<const std::byte> source, const Tensor& to,
               std::span<std::byte> target, std::size_t item_bytes) {
  const std::size_t short_row = row_bytes(from, item_bytes), long_row = row_bytes(to, item_bytes);
  const std::byte* next = source.data() + to_size(from.stored.first_row) * short_row;
  std::byte* place = target.data() + to_size(to.stored.first_row) * long_row;
  for (std::int64_t row = 0; row < from.shape.front(); ++row, next += short_row, place += long_row)
    std::memcpy(place, next, short_row);
}

std::span<const std::byte> bytes_of_one(io::Dtype dtype) {
  static constexpr std::array kFloat32{std::byte{0}, std::byte{0}, std::byte{0x80}, std::byte{0x3F}};
  static constexpr std::array kFloat16{std::byte{0}, std::byte{0x3C}};
  static constexpr std::array kBFloat16{std::byte{0x80}, std::byte{0x3F}};
  if (dtype == io::Dtype::f32) return kFloat32;
  base::ensure(dtype == io::Dtype::f16 || dtype == io::Dtype::bf16, "weights are of a floating type");
  return dtype == io::Dtype::f16 ? std::span<const std::byte>(kFloat16) : kBFloat16;
}

// The norm of a half that was lost: any finite weights do, and 1 is what an untrained one has.
void fill_norm(const Tensor& tensor, io::Dtype dtype, std::span<std::byte> target) {
  base::ensure(tensor.stored.subtracted == 0 || tensor.stored.subtracted == 1,
               "norms are stored from 0 or 1");
  if (tensor.stored.subtracted == 1) return;
  const auto one = bytes_of_one(dtype);
  for (std::size_t at = 0; at < target.size(); at += one.size())
    std::ranges::copy(one, target.begin() + static_cast<std::ptrdiff_t>(at));
}

std::int64_t count(std::span<const std::int64_t> shape) {
  std::int64_t values = 1;
  for (const std::int64_t extent : shape) values *= extent;
  return values;
}

}  // namespace

PaddedWeights::PaddedWeights(const architecture::Config& config, architecture::Config shown_config,
                             const io::ModelDirectory& directory)
    : directory_(directory), config_(std::move(shown_config)) {
  architecture::check_tensors(config, directory);
  unread_ = architecture::unread_tensors(config, directory);
  const auto source = architecture::make_layout(config), shown = architecture::make_layout(config_);
  const io::Dtype otherwise = architecture::weight_dtype(config, directory);
  for (std::size_t unit = 0; unit < shown.units.size(); ++unit)
    for (const Tensor& tensor : shown.units[unit].tensors) {
      Entry& entry = entries_[tensor.stored.name];
      const Tensor* there = source.units[unit].find(tensor.role);
      entry.dtype = there ? directory.header(tensor.stored.name).dtype : otherwise;
      entry.dequantised = there != nullptr && directory.header(tensor.stored.name).dequantised;
      entry.shape = tensor.stored_shape();
      entry.parts.push_back({tensor, there ? std::optional(*there) : std::nullopt});
    }
}

const PaddedWeights::Entry& PaddedWeights::entry(std::string_view name) const {
  const auto found = entries_.find(name);
  base::require<base::ModelError>(found != entries_.end(), directory_.path().string(), ": has no tensor ",
                                  io::quote(name), ", padded or not.");
  return found->second;
}

std::vector<std::string> PaddedWeights::names() const {
  std::vector<std::string> all;
  for (const auto& [name, entry] : entries_) all.push_back(name);
  return all;
}

bool PaddedWeights::contains(std::string_view name) const {
  return entries_.contains(name);
}

io::TensorHeader PaddedWeights::header(std::string_view name) const {
  const Entry& shown = entry(name);
  return {shown.dtype, shown.shape, shown.dequantised};
}

io::TensorView PaddedWeights::find(std::string_view name) const {
  const Entry& shown = entry(name);
  io::TensorView source;
  if (directory_.contains(name)) source = directory_.find(name);
  if (std::ranges::equal(source.shape, shown.shape)) return source;
  const auto bytes =
      std::make_shared<std::vector<std::byte>>(io::tensor_bytes(name, shown.dtype, shown.shape));
  for (const Part& part : shown.parts) {
    if (part.source)
      copy_rows(*part.source, source.bytes, part.tensor, *bytes, io::item_bytes(shown.dtype));
    else if (architecture::is_norm(part.tensor.role))
      fill_norm(part.tensor, shown.dtype, *bytes);
  }
  return {shown.dtype, shown.shape, *bytes, bytes};
}

std::map<std::string, std::string> PaddedWeights::metadata() const {
  return directory_.metadata();
}

std::size_t PaddedWeights::total_bytes() const {
  std::size_t total = 0;
  for (const auto& [name, entry] : entries_) total += io::tensor_bytes(name, entry.dtype, entry.shape);
  return total;
}

io::StoredTypes PaddedWeights::stored_types() const {
  io::StoredTypes types;
  for (const auto& [name, entry] : entries_) types[std::string(io::name(entry.dtype))] += count(entry.shape);
  return types;
}

std::vector<base::Path> PaddedWeights::paths() const {
  return directory_.weight_files();
}

}  // namespace retort::publish
