#include "retort/model/lineage.h"

#include <algorithm>
#include <numeric>

#include "retort/base/error.h"

namespace retort::model {
namespace {

std::vector<std::int64_t> iota(std::int64_t count) {
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

bool counts_up(const std::vector<std::int64_t>& numbers) {
  return numbers == iota(std::ssize(numbers));
}

bool rising(const std::vector<std::int64_t>& numbers) {
  return std::adjacent_find(numbers.begin(), numbers.end(), std::greater_equal<>()) == numbers.end() &&
         (numbers.empty() || numbers.front() >= 0);
}

}  // namespace

bool Lineage::identity() const {
  const auto count = static_cast<std::int64_t>(blocks.size());
  return count == teacher_blocks && blocks == iota(count) && sparse_layers.empty() &&
         std::all_of(channels.begin(), channels.end(), counts_up) &&
         std::all_of(kv_groups.begin(), kv_groups.end(), counts_up) && hidden == iota(teacher_hidden);
}

Lineage whole_lineage(const architecture::Config& config) {
  Lineage lineage;
  lineage.teacher_blocks = static_cast<std::int64_t>(config.blocks.size());
  lineage.blocks = iota(lineage.teacher_blocks);
  lineage.teacher_hidden = config.hidden_size;
  lineage.hidden = iota(config.hidden_size);
  for (const auto& block : config.blocks) {
    lineage.channels.push_back(iota(mlp_width(block)));
    lineage.kv_groups.push_back(iota(kv_groups(block)));
  }
  return lineage;
}

base::Json to_json(const Lineage& lineage) {
  return {{"teacher_blocks", lineage.teacher_blocks},
          {"teacher_hidden", lineage.teacher_hidden},
          {"blocks", lineage.blocks},
          {"channels", lineage.channels},
          {"kv_groups", lineage.kv_groups},
          {"hidden", lineage.hidden},
          {"pattern", lineage.pattern},
          {"sparse_layers", lineage.sparse_layers}};
}

Lineage lineage_from_json(const base::Json& json, const architecture::Config& config,
                          const std::string& where) {
  Lineage lineage = whole_lineage(config);  // older files have neither kv_groups nor hidden
  try {
    json.at("teacher_blocks").get_to(lineage.teacher_blocks);
    json.at("blocks").get_to(lineage.blocks);
    json.at("channels").get_to(lineage.channels);
    if (json.contains("kv_groups")) json["kv_groups"].get_to(lineage.kv_groups);
    if (json.contains("hidden")) {
      json.at("teacher_hidden").get_to(lineage.teacher_hidden);
      json["hidden"].get_to(lineage.hidden);
    }
    json.at("pattern").get_to(lineage.pattern);
    json.at("sparse_layers").get_to(lineage.sparse_layers);
  } catch (const nlohmann::json::exception& error) {
    throw base::ModelError(base::join(where, ": the lineage is not as Retort writes it (", error.what(),
                                      "); delete the file to treat the model as an original one."));
  }
  bool fits = lineage.blocks.size() == config.blocks.size() &&
              lineage.channels.size() == config.blocks.size() &&
              lineage.kv_groups.size() == config.blocks.size() && rising(lineage.blocks) &&
              std::ssize(lineage.hidden) == config.hidden_size && rising(lineage.hidden) &&
              lineage.hidden.back() < lineage.teacher_hidden &&
              (lineage.blocks.empty() || lineage.blocks.back() < lineage.teacher_blocks);
  for (std::size_t i = 0; fits && i < config.blocks.size(); ++i)
    fits = static_cast<std::int64_t>(lineage.channels[i].size()) == mlp_width(config.blocks[i]) &&
           rising(lineage.channels[i]) && std::ssize(lineage.kv_groups[i]) == kv_groups(config.blocks[i]) &&
           rising(lineage.kv_groups[i]);
  base::require<base::ModelError>(fits, where, ": the lineage does not fit config.json (",
                                  config.blocks.size(),
                                  " blocks); delete the file to treat the model as an original one.");
  return lineage;
}

Lineage read_lineage(const base::Path& directory, const architecture::Config& config) {
  const auto path = directory / kLineageFile;
  if (!std::filesystem::exists(path)) return whole_lineage(config);
  const auto text = base::read_file(path);
  try {
    const auto json = base::parse_json(text, {.max_bytes = std::size_t{1} << 28});
    if (!json.contains("lineage")) return whole_lineage(config);
    return lineage_from_json(json["lineage"], config, path.string());
  } catch (const base::JsonFault& fault) {
    throw base::ModelError(
        base::join(path.string(), ": not JSON at byte ", fault.byte, ": ", fault.reason, "."));
  }
}

}  // namespace retort::model
