#include "retort/model/lineage.h"

#include <algorithm>

#include "retort/base/error.h"
#include "retort/base/json_file.h"
#include "retort/io/files_inside.h"

namespace retort::model {
namespace {

bool rising(const std::vector<std::int64_t>& numbers) {
  return std::adjacent_find(numbers.begin(), numbers.end(), std::greater_equal<>()) == numbers.end() &&
         (numbers.empty() || numbers.front() >= 0);
}

bool distinct(std::vector<std::int64_t> numbers) {
  std::sort(numbers.begin(), numbers.end());
  return rising(numbers);
}

// Of numbers that a lineage of this model has.
std::int64_t longest_list(const architecture::Config& config) {
  auto longest = config.hidden_size;
  for (const auto& block : config.blocks) longest = std::max({longest, mlp_width(block), kv_groups(block)});
  return longest;
}

}  // namespace

bool Lineage::identity() const {
  const auto counts_up = [](const auto& numbers) {
    return numbers == architecture::counted(std::ssize(numbers));
  };
  for (std::size_t i = 0; i < kept.blocks.size(); ++i) {
    bool whole = kept.blocks[i].number == static_cast<std::int64_t>(i);
    architecture::for_each_part(kept.blocks[i],
                                [&](auto, const auto& numbers) { whole = whole && counts_up(numbers); });
    if (!whole) return false;
  }
  return std::ssize(kept.blocks) == teacher_blocks && sparse_layers.empty() &&
         std::ssize(kept.hidden) == teacher_hidden && counts_up(kept.hidden);
}

Lineage whole_lineage(const architecture::Config& config) {
  return {.kept = architecture::whole(config),
          .sparse_layers = {},
          .pattern = {},
          .teacher_blocks = std::ssize(config.blocks),
          .teacher_hidden = config.hidden_size};
}

base::Json to_json(const Lineage& lineage) {
  auto json = architecture::to_json(lineage.kept);
  json.update({{"teacher_blocks", lineage.teacher_blocks},
               {"teacher_hidden", lineage.teacher_hidden},
               {"pattern", lineage.pattern},
               {"sparse_layers", lineage.sparse_layers}});
  return json;
}

Lineage lineage_from_json(const base::Json& json, const architecture::Config& config,
                          const std::string& where) {
  Lineage lineage = whole_lineage(config);
  bool fits = false;
  try {
    auto complete = architecture::to_json(lineage.kept);  // older files have neither kv_groups nor hidden
    for (const auto& [key, value] : complete.items())
      if (const auto given = json.find(key); given != json.end()) value = *given;
    fits = json.at("channels").size() == config.blocks.size() &&
           complete.at("blocks").size() == config.blocks.size();
    if (fits) lineage.kept = architecture::kept_from_json(complete, longest_list(config) + 1);
    json.at("teacher_blocks").get_to(lineage.teacher_blocks);
    if (json.contains("hidden")) json.at("teacher_hidden").get_to(lineage.teacher_hidden);
    json.at("pattern").get_to(lineage.pattern);
    json.at("sparse_layers").get_to(lineage.sparse_layers);
  } catch (const nlohmann::json::exception& error) {
    throw base::ModelError(base::join(where, ": the lineage is not as Retort writes it (", error.what(),
                                      "); delete the file to treat the model as an original one."));
  }
  const auto& kept = lineage.kept;
  fits = fits && std::ssize(kept.hidden) == config.hidden_size && rising(kept.hidden) &&
         kept.hidden.back() < lineage.teacher_hidden;
  for (std::size_t i = 0; fits && i < config.blocks.size(); ++i) {
    const auto& block = kept.blocks[i];
    fits = block.number >= 0 && (i == 0 || block.number > kept.blocks[i - 1].number) &&
           block.number < lineage.teacher_blocks;
    architecture::for_each_part(block, [&](architecture::PartKind kind, const auto& numbers) {
      // Channels may have been permuted.
      const bool in_order = kind == architecture::PartKind::channels ? distinct(numbers) : rising(numbers);
      fits = fits && in_order &&
             std::ssize(numbers) == architecture::count_of(config, kind, static_cast<std::int64_t>(i));
    });
  }
  base::require<base::ModelError>(fits, where, ": the lineage does not fit config.json (",
                                  config.blocks.size(),
                                  " blocks); delete the file to treat the model as an original one.");
  return lineage;
}

Lineage read_lineage(const base::Path& directory, const architecture::Config& config) {
  const auto path = directory / kLineageFile;
  if (!io::entry_exists(path)) return whole_lineage(config);
  try {
    const auto json = base::read_own_json(io::resolve_inside(directory, kLineageFile));
    if (!json.contains("lineage")) return whole_lineage(config);
    const auto format = json.value("format", base::Json(1));
    base::require<base::ModelError>(format == 1 || format == kLineageFormat, path.string(), ": format ",
                                    format.dump(), ", expected 1 or ", kLineageFormat,
                                    "; use the version of Retort that wrote the model.");
    return lineage_from_json(json["lineage"], config, path.string());
  } catch (const base::JsonFault& fault) {
    throw base::ModelError(
        base::join(path.string(), ": not JSON at byte ", fault.byte, ": ", fault.reason, "."));
  }
}

}  // namespace retort::model
