#include "retort/recipe/recipe.h"

#include <algorithm>
#include <utility>

#include "retort/base/error.h"
#include "retort/recipe/binding.h"
#include "retort/recipe/document.h"
#include "retort/recipe/reader.h"
#include "retort/recipe/stage_kinds.h"
#include "retort/recipe/suggestion.h"

namespace retort::recipe {
namespace {

constexpr std::size_t kMaxShown = 40;

std::string all_of(const std::vector<std::string>& mistakes, const std::string& where) {
  if (mistakes.size() == 1) return mistakes.front();
  std::string text = base::join(where, ": ", mistakes.size(), " mistakes",
                                mistakes.size() >= kMaxMistakes ? " or more" : "");
  for (std::size_t i = 0; i < mistakes.size() && i < kMaxShown; ++i) text += "\n  " + mistakes[i];
  if (mistakes.size() > kMaxShown) text += base::join("\n  and ", mistakes.size() - kMaxShown, " more");
  return text;
}

// "b/model" of "/a/b/model/" by two parts.
std::string last_parts(const std::string& path, std::size_t parts) {
  auto end = path.find_last_not_of('/');
  end = end == std::string::npos ? path.size() : end + 1;
  auto begin = end;
  for (; begin > 0; --begin)
    if (path[begin - 1] == '/' && --parts == 0) break;
  return path.substr(begin, end - begin);
}

// A recipe is part of the command.
std::string text_of(const base::Path& path) {
  try {
    return base::read_file(path, std::size_t{1} << 20);
  } catch (const base::Error& error) {
    throw base::UsageError(error.what());
  }
}

Value document_of(std::string_view text, const std::string& where) {
  Value root = parse_yaml(text, where);
  base::require<base::UsageError>(root.kind != Value::Kind::null, where, ": is empty, expected a recipe.");
  return root;
}

// `mistakes`: those that are known already.
Recipe recipe_of(const Value& root, const std::string& where, std::vector<std::string> mistakes = {}) {
  Recipe recipe;
  const auto found = read(root, recipe);
  mistakes.insert(mistakes.end(), found.begin(), found.end());
  base::require<base::UsageError>(mistakes.empty(), all_of(mistakes, where));
  return recipe;
}

bool is_former(const Entry& entry) {
  return std::ranges::count(former_keys(), entry.key, &FormerKey::key) > 0;
}

}  // namespace

std::string_view name(StageKind kind) {
  return traits_of(kind).name;
}

std::vector<std::string> Stage::origins() const {
  if (!traits_of(kind).makes_model || !config.empty()) return {};
  return from.empty() ? models : std::vector<std::string>{from};
}

std::vector<std::string> Stage::labels() const {
  if (!as.empty()) return as;
  std::vector<std::string> labels;
  for (const auto& model : models) {
    std::size_t parts = 1;
    const auto shared = [&](const std::string& other) {
      return other != model && last_parts(other, parts) == last_parts(model, parts);
    };
    while (parts < model.size() && std::ranges::any_of(models, shared)) ++parts;
    labels.push_back(last_parts(model, parts));
  }
  return labels;
}

std::vector<std::string> Stage::models_read() const {
  auto names = models;
  for (const auto& one : {from, teacher})
    if (!one.empty()) names.push_back(one);
  return names;
}

void Binder::one_of(const char* key, std::string& value, const Words& words, const Field& field) {
  std::size_t index = 0;
  while (index + 1 < words.size() && words[index] != value) ++index;
  base::ensure(words.at(index) == value, "a recipe's word is one of those that its key takes");
  word(key, index, words, field);
  value = std::string(words.at(index));
}

const Stage* Recipe::find_stage(std::string_view stage_name) const {
  for (const Stage& one : stages)
    if (one.name == stage_name) return &one;
  return nullptr;
}

const Stage& Recipe::stage(std::string_view stage_name) const {
  if (const Stage* found = find_stage(stage_name)) return *found;
  std::vector<std::string> names;
  for (const Stage& one : stages) names.push_back(one.name);
  const std::string meant = did_you_mean(stage_name, names);
  throw base::UsageError(
      base::join("stage '", stage_name, "' is not in the recipe", meant.empty() ? "." : meant));
}

const data::SourceOptions& Recipe::source(std::string_view source_name) const {
  for (const data::SourceOptions& one : data)
    if (one.name == source_name) return one;
  throw base::UsageError(base::join("source '", source_name, "' is not in the recipe."));
}

namespace {

// Sources with tokens weigh as much, and the others share what is left.
void weigh_by_budgets(std::vector<data::SourceOptions>& sources, std::int64_t tokens) {
  double left = static_cast<double>(tokens), weights = 0;
  for (const auto& source : sources) {
    left -= static_cast<double>(source.tokens);
    weights += source.tokens > 0 ? 0 : source.weight;
  }
  const bool budgets = std::ranges::any_of(sources, [](const auto& source) { return source.tokens > 0; });
  if (!budgets) return;
  for (auto& source : sources)
    source.weight = source.tokens > 0 ? static_cast<double>(source.tokens) : source.weight * left / weights;
}

}  // namespace

std::vector<data::SourceOptions> Recipe::sources(const Stage& stage) const {
  std::vector<data::SourceOptions> sources;
  for (const auto& one : stage.data) sources.push_back(source(one));
  if (const auto* training = std::get_if<train::TrainOptions>(&stage.options))
    weigh_by_budgets(sources, training->tokens);
  return sources;
}

Recipe parse_recipe(std::string_view text, const std::string& where, std::span<const std::string> overrides) {
  Value root = document_of(text, where);
  std::vector<std::string> mistakes;
  for (const std::string& assignment : overrides) {
    try {
      apply_override(root, assignment);
    } catch (const base::UsageError& error) {
      mistakes.emplace_back(error.what());
    }
  }
  return recipe_of(root, where, std::move(mistakes));
}

Recipe read_recipe(const base::Path& path, std::span<const std::string> overrides) {
  return parse_recipe(text_of(path), path.string(), overrides);
}

Recipe read_recorded_recipe(const base::Path& path) {
  Value root = document_of(text_of(path), path.string());
  if (Value* stages = root.find("stages"))
    for (Value& stage : stages->items) std::erase_if(stage.entries, is_former);
  return recipe_of(root, path.string());
}

std::vector<std::string> former_stage_keys() {
  std::vector<std::string> keys;
  for (const auto& former : former_keys()) keys.emplace_back(former.key);
  return keys;
}

}  // namespace retort::recipe
