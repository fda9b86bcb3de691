#include "retort/architecture/hf_layers.h"

#include <array>
#include <charconv>
#include <map>

#include "retort/base/error.h"
#include "retort/io/quote.h"

namespace retort::architecture {
namespace {

using base::Json;
using base::ModelError;
using base::require;

constexpr std::array kListed{"num_attention_heads", "num_key_value_heads", "head_dim", "intermediate_size"};

std::vector<std::int64_t> read_list(const Json& config, const char* key, std::size_t count,
                                    const std::string& where) {
  const auto found = config.find(key);
  require<ModelError>(found != config.end() && found->is_array() && found->size() == count, where, ": ", key,
                      " is ", found == config.end() ? "absent" : io::shown(*found), ", expected a list of ",
                      count, " numbers, one for each layer of a ", kOwnArchitecture, ".");
  std::vector<std::int64_t> numbers;
  for (const Json& number : *found) {
    require<ModelError>(number.is_number_integer(), where, ": ", key, " holds ", io::shown(number),
                        ", expected whole numbers.");
    numbers.push_back(number.get<std::int64_t>());
  }
  return numbers;
}

// An entry of the object and where it is, for messages.
struct Entry {
  const Json& value;
  std::string where;

  std::int64_t integer(const std::string& key, const Json& number) const {
    require<ModelError>(number.is_number_integer(), where, ".", key, " is ", io::shown(number),
                        ", expected a whole number.");
    return number.get<std::int64_t>();
  }
};

std::size_t layer_number(const std::string& key, std::size_t count, const std::string& where) {
  std::size_t layer = count;
  const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), layer);
  require<ModelError>(
      error == std::errc() && end == key.data() + key.size() && layer < count && key == std::to_string(layer),
      where, ": per_layer_config names layer ", io::quote(key), ", expected numbers from 0 to ", count - 1,
      ".");
  return layer;
}

void skip(const Json& list, Block& block, const std::string& where) {
  require<ModelError>(list.is_array(), where, ".skip is ", io::shown(list), ", expected a list.");
  for (const Json& part : list) {
    const bool attention = part == "attention", mlp = part == "mlp";
    require<ModelError>(attention || mlp, where, ".skip names ", io::shown(part),
                        ", expected \"attention\" or \"mlp\".");
    if (attention) block.attention.reset();
    if (mlp) block.mlp = std::monostate{};
  }
}

void change(const Entry& entry, Block& block) {
  require<ModelError>(entry.value.is_object(), entry.where, " is ", io::shown(entry.value),
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
  block.attention = attention;
  block.mlp = mlp;
  if (const auto list = entry.value.find("skip"); list != entry.value.end()) skip(*list, block, entry.where);
}

}  // namespace

void apply_per_layer_config(const Json& value, std::vector<Block>& blocks, const std::string& where) {
  require<ModelError>(value.is_object(), where, ": per_layer_config is ", io::shown(value),
                      ", expected an object.");
  for (const auto& [key, entry] : value.items())
    change({entry, base::join(where, ": per_layer_config.", key)},
           blocks[layer_number(key, blocks.size(), where)]);
}

base::Json own_code() {
  return {{"AutoConfig", "modeling_retort.RetortConfig"},
          {"AutoModelForCausalLM", base::join("modeling_retort.", kOwnArchitecture)}};
}

void write_layers(const std::vector<Block>& blocks, Json& config) {
  for (const char* key : kListed) config[key] = Json::array();
  for (const Block& block : blocks) {
    base::require<base::InternalError>(!std::holds_alternative<ExpertsMlp>(block.mlp),
                                       "config.json: blocks with experts cannot be written yet.");
    const Attention attention = block.attention.value_or(Attention{});
    config["num_attention_heads"].push_back(attention.num_heads);
    config["num_key_value_heads"].push_back(attention.num_kv_heads);
    config["head_dim"].push_back(attention.head_dim);
    config["intermediate_size"].push_back(mlp_width(block));
  }
}

void read_layers(const Json& config, std::vector<Block>& blocks, const std::string& where) {
  std::map<std::string, std::vector<std::int64_t>> lists;
  for (const char* key : kListed) lists[key] = read_list(config, key, blocks.size(), where);
  for (std::size_t layer = 0; layer < blocks.size(); ++layer) {
    Block& block = blocks[layer];
    const Attention attention{lists["num_attention_heads"][layer], lists["num_key_value_heads"][layer],
                              lists["head_dim"][layer], block.attention->kind};
    if (attention == Attention{.kind = attention.kind})
      block.attention.reset();
    else
      block.attention = attention;
    if (const auto width = lists["intermediate_size"][layer]; width != 0)
      std::get<DenseMlp>(block.mlp).width = width;
    else
      block.mlp = std::monostate{};
  }
}

}  // namespace retort::architecture
