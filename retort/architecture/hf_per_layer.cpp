#include "retort/architecture/hf_per_layer.h"

#include <algorithm>
#include <charconv>

#include "retort/base/error.h"
#include "retort/io/quote.h"

namespace retort::architecture {
namespace {

using base::Json;
using base::ModelError;
using base::require;

// An entry of the object and where it is, for messages.
struct Entry {
  const Json& value;
  std::string where;

  std::int64_t integer(const std::string& key, const Json& number) const {
    require<ModelError>(number.is_number_integer(), where, ".", key, " is ", io::quote(number.dump()),
                        ", expected a whole number.");
    return number.get<std::int64_t>();
  }
};

std::size_t layer_number(const std::string& key, std::size_t count, const std::string& where) {
  std::size_t layer = count;
  const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), layer);
  require<ModelError>(error == std::errc() && end == key.data() + key.size() && layer < count, where,
                      ": per_layer_config names layer ", io::quote(key), ", expected numbers from 0 to ",
                      count - 1, ".");
  return layer;
}

void skip(const Json& list, Block& block, const std::string& where) {
  require<ModelError>(list.is_array(), where, ".skip is ", io::quote(list.dump()), ", expected a list.");
  for (const Json& part : list) {
    const bool attention = part == "attention", mlp = part == "mlp";
    require<ModelError>(attention || mlp, where, ".skip names ", io::quote(part.dump()),
                        ", expected \"attention\" or \"mlp\".");
    if (attention) block.attention.reset();
    if (mlp) block.mlp = std::monostate{};
  }
}

void change(const Entry& entry, Block& block) {
  require<ModelError>(entry.value.is_object(), entry.where, " is ", io::quote(entry.value.dump()),
                      ", expected an object.");
  Attention attention = block.attention.value_or(Attention{});
  DenseMlp mlp = std::get<DenseMlp>(block.mlp);
  for (const auto& [key, value] : entry.value.items()) {
    if (key == "num_attention_heads")
      attention.num_heads = entry.integer(key, value);
    else if (key == "num_key_value_heads")
      attention.num_kv_heads = entry.integer(key, value);
    else if (key == "head_dim")
      attention.head_dim = entry.integer(key, value);
    else if (key == "intermediate_size")
      mlp.width = entry.integer(key, value);
    else
      require<ModelError>(key == "skip", entry.where, " has the key ", io::quote(key),
                          ", which is not supported there and would change what the model computes.");
  }
  block = {attention, mlp};
  if (const auto list = entry.value.find("skip"); list != entry.value.end()) skip(*list, block, entry.where);
}

}  // namespace

void apply_per_layer_config(const Json& value, std::vector<Block>& blocks, const std::string& where) {
  require<ModelError>(value.is_object(), where, ": per_layer_config is ", io::quote(value.dump()),
                      ", expected an object.");
  for (const auto& [key, entry] : value.items())
    change({entry, base::join(where, ": per_layer_config.", key)},
           blocks[layer_number(key, blocks.size(), where)]);
}

Block common_block(const std::vector<Block>& blocks) {
  Block common;
  std::int64_t width = 0;
  std::ptrdiff_t most = 0;
  for (const Block& block : blocks) {
    base::require<base::InternalError>(!std::holds_alternative<ExpertsMlp>(block.mlp),
                                       "config.json: blocks with experts cannot be written yet.");
    if (const auto* dense = std::get_if<DenseMlp>(&block.mlp)) width = std::max(width, dense->width);
    const auto alike = std::count_if(blocks.begin(), blocks.end(),
                                     [&](const Block& other) { return other.attention == block.attention; });
    if (!block.attention || alike <= most) continue;
    most = alike;
    common.attention = block.attention;
  }
  base::require<base::InternalError>(
      common.attention && width > 0,
      "config.json: a model without any attention, or without any MLP, cannot be "
      "described.");
  common.mlp = DenseMlp{width};
  return common;
}

Json per_layer_config(const std::vector<Block>& blocks, const Block& common) {
  Json layers = Json::object();
  for (std::size_t layer = 0; layer < blocks.size(); ++layer) {
    const Block& block = blocks[layer];
    Json entry = Json::object(), skipped = Json::array();
    if (!block.attention) {
      skipped.push_back("attention");
    } else {
      if (block.attention->num_heads != common.attention->num_heads)
        entry["num_attention_heads"] = block.attention->num_heads;
      if (block.attention->num_kv_heads != common.attention->num_kv_heads)
        entry["num_key_value_heads"] = block.attention->num_kv_heads;
      if (block.attention->head_dim != common.attention->head_dim)
        entry["head_dim"] = block.attention->head_dim;
    }
    const auto* dense = std::get_if<DenseMlp>(&block.mlp);
    if (!dense)
      skipped.push_back("mlp");
    else if (*dense != std::get<DenseMlp>(common.mlp))
      entry["intermediate_size"] = dense->width;
    if (!skipped.empty()) entry["skip"] = skipped;
    if (!entry.empty()) layers[std::to_string(layer)] = entry;
  }
  return layers;
}

}  // namespace retort::architecture
