#include "retort/recipe/document.h"

#include <algorithm>
#include <charconv>
#include <vector>

#include "retort/base/error.h"
#include "retort/recipe/suggestion.h"

namespace retort::recipe {
namespace {

[[noreturn]] void refuse(const std::string& place, const std::string& what) {
  throw base::UsageError(base::join(place, ": ", what, what.ends_with('?') ? "" : "."));
}

std::vector<std::string> split_path(std::string_view path) {
  std::vector<std::string> parts;
  for (std::size_t start = 0; start <= path.size();) {
    const std::size_t dot = std::min(path.find('.', start), path.size());
    parts.emplace_back(path.substr(start, dot - start));
    start = dot + 1;
  }
  return parts;
}

std::string label(const Value& item) {
  for (const char* key : {"name", "kind"})
    if (const Value* value = item.find(key); value && value->kind == Value::Kind::scalar) return value->text;
  return "";
}

Value& item_of(Value& list, const std::string& part, const std::string& place, const std::string& path) {
  std::vector<std::string> labels;
  for (Value& item : list.items) {
    labels.push_back(label(item));
    if (labels.back() == part) return item;
  }
  std::size_t index = 0;
  const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), index);
  if (error == std::errc() && end == part.data() + part.size() && index < list.items.size())
    return list.items[index];
  refuse(place, "'" + part + "' is no item of " + path + did_you_mean(part, labels));
}

Value& step_into(Value& node, const std::string& part, const std::string& place, const std::string& path) {
  if (node.kind == Value::Kind::list) return item_of(node, part, place, path);
  if (node.kind == Value::Kind::scalar)
    refuse(place, path + " is a single value and has no key '" + part + "'");
  node.kind = Value::Kind::map;
  if (Value* found = node.find(part)) return *found;
  Value& made = node.entries.emplace_back(part, Value{}).value;
  made.place = place;
  return made;
}

void set_place(Value& value, const std::string& place) {
  value.place = place;
  for (Value& item : value.items) set_place(item, place);
  for (auto& [key, entry] : value.entries) set_place(entry, place);
}

}  // namespace

void apply_override(Value& root, const std::string& assignment) {
  const std::string place = base::join(kOverride, " ", assignment);
  const std::size_t equals = assignment.find('=');
  if (equals == std::string::npos || equals == 0)
    refuse(place, "expected KEY=VALUE, for example stages.student.tokens=60k");
  const auto parts = split_path(std::string_view(assignment).substr(0, equals));
  if (parts.size() > io::kMaxYamlDepth)
    refuse(place, base::join("nested deeper than ", io::kMaxYamlDepth, " levels"));
  Value* node = &root;
  std::string path;
  for (const std::string& part : parts) {
    if (part.empty()) refuse(place, "the key has an empty part");
    node = &step_into(*node, part, place, path.empty() ? "the recipe" : path);
    path += (path.empty() ? "" : ".") + part;
  }
  *node = parse_yaml(std::string_view(assignment).substr(equals + 1), place, io::YamlPlaces::one);
  set_place(*node, place);
}

}  // namespace retort::recipe
