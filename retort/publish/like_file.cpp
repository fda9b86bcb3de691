#include "retort/publish/like_file.h"

#include <cstring>

#include "retort/base/error.h"
#include "retort/io/gguf_names.h"
#include "retort/io/gguf_parts.h"
#include "retort/io/quote.h"

namespace retort::publish {
namespace {

// "blk.2.ffn_up.weight" as the block was numbered before.
std::string name_before(const std::string& name, const std::vector<std::int64_t>& numbers) {
  const auto block = io::gguf_block(name);
  if (!block || *block >= numbers.size()) return name;
  const std::string own = base::join("blk.", *block, ".");
  return base::join("blk.", numbers[*block], ".", name.substr(own.size()));
}

}  // namespace

LikeFile::LikeFile(const base::Path& file, std::vector<std::int64_t> numbers)
    : path_(file), numbers_(std::move(numbers)), parts_(io::open_gguf_parts(file)) {
  for (std::size_t part = 0; part < parts_.size(); ++part)
    for (const auto& [name, tensor] : parts_[part].tensors()) places_[name] = {part, &tensor};
}

const LikeFile::Place& LikeFile::place(const std::string& name) const {
  const auto before = name_before(name, numbers_);
  const auto found = places_.find(before);
  base::require<base::ModelError>(
      found != places_.end(), path_.string(), ": has no tensor ", io::quote(before),
      ", expected the file of the model that this one was made from; use --type.");
  return found->second;
}

io::GgmlType LikeFile::type(const std::string& name) const {
  return place(name).tensor->type;
}

std::optional<StoredBlocks> LikeFile::blocks(const std::string& name, std::int64_t cols,
                                             ValuesOfModel values) const {
  const auto& [part, tensor] = place(name);
  const auto unit = static_cast<std::int64_t>(io::block_of(tensor->type).values);
  const std::int64_t own = tensor->shape.empty() ? 0 : tensor->shape.back();
  const bool whole = io::is_quantised(tensor->type) ? cols % unit == 0 : values.added != 0 && cols == own;
  if (!whole || own == 0) return std::nullopt;
  parts_[part].check_unchanged();
  return StoredBlocks(tensor->type, parts_[part].bytes(*tensor), static_cast<std::size_t>(cols), values);
}

std::vector<float> LikeFile::divisors(const std::string& name) const {
  const auto found = places_.find(name);
  if (found == places_.end() || found->second.tensor->type != io::GgmlType::f32) return {};
  const auto bytes = parts_[found->second.part].bytes(*found->second.tensor);
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

}  // namespace retort::publish
