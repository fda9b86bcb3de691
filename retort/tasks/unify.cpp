#include "retort/tasks/unify.h"

#include <memory>
#include <unordered_map>
#include <utility>

namespace retort::tasks {
namespace {

using base::Json;

// What all values of one place have in common.
struct Shape {
  bool has_whole = false, has_real = false, has_object = false, has_other = false;
  std::vector<std::pair<std::string, std::unique_ptr<Shape>>> members;
  std::unordered_map<std::string, std::size_t> index;
  std::unique_ptr<Shape> item;

  Shape& member(const std::string& key) {
    const auto [entry, is_new] = index.try_emplace(key, members.size());
    if (is_new) members.emplace_back(key, std::make_unique<Shape>());
    return *members[entry->second].second;
  }

  void see(const Json& value) {
    if (value.is_object()) {
      has_object = true;
      for (const auto& [key, inner] : value.items()) member(key).see(inner);
    } else if (value.is_array()) {
      has_other = true;
      if (!item) item = std::make_unique<Shape>();
      for (const Json& one : value) item->see(one);
    } else if (value.is_number_float()) {
      has_real = true;
    } else if (value.is_number()) {
      has_whole = true;
    } else if (!value.is_null()) {
      has_other = true;
    }
  }

  void fit(Json& value) const {
    if (value.is_object() && !has_other) {
      fit_members(value);
    } else if (value.is_array() && item) {
      for (Json& one : value) item->fit(one);
    } else if (value.is_number_integer() && has_real) {
      value = value.get<double>();
    }
  }

  bool is_in_order(const Json& object) const {
    if (object.size() != members.size()) return false;
    std::size_t at = 0;
    for (const auto& item_of : object.items())
      if (item_of.key() != members[at++].first) return false;
    return true;
  }

  void fit_members(Json& object) const {
    if (!is_in_order(object)) {
      Json whole = Json::object();
      for (const auto& [key, shape] : members) {
        const auto found = object.find(key);
        whole[key] = found == object.end() ? Json() : std::move(*found);
      }
      object = std::move(whole);
    }
    auto member_shape = members.begin();
    for (auto& entry : object.get_ref<Json::object_t&>()) (member_shape++)->second->fit(entry.second);
  }
};

}  // namespace

std::vector<std::string> unify(std::vector<Json>& rows) {
  Shape shape;
  for (const Json& row : rows) shape.see(row);
  for (Json& row : rows) shape.fit(row);
  std::vector<std::string> columns;
  for (const auto& member : shape.members) columns.push_back(member.first);
  return columns;
}

}  // namespace retort::tasks
