#include "retort/text/node.h"

#include <algorithm>

#include "retort/text/limits.h"

namespace retort::text {

std::string shown(std::string_view text) {
  constexpr std::size_t kLongest = 80;
  std::string out = "\"";
  for (const char c : text.substr(0, kLongest)) out.push_back(static_cast<unsigned char>(c) < 0x20 ? '?' : c);
  // Never end inside a character.
  if (text.size() > kLongest) {
    while ((static_cast<unsigned char>(out.back()) & 0xC0) == 0x80) out.pop_back();
    if (static_cast<unsigned char>(out.back()) >= 0xC0) out.pop_back();
    out += "...";
  }
  return out + "\"";
}

std::string Node::kind() const {
  return value_->type_name();
}

Node Node::at(const char* key) const {
  if (!value_->is_object()) fail("expected an object with \"", key, "\", found ", kind(), ".");
  const auto found = value_->find(key);
  if (found == value_->end()) fail("the key \"", key, "\" is missing.");
  return {*found, file_, place_.empty() ? key : place_ + "." + key};
}

std::optional<Node> Node::find(const char* key) const {
  if (!value_->is_object()) fail("expected an object, found ", kind(), ".");
  const auto found = value_->find(key);
  if (found == value_->end() || found->is_null()) return std::nullopt;
  return at(key);
}

std::vector<Node> Node::elements(std::size_t most) const {
  if (!value_->is_array()) fail("expected a list, found ", kind(), ".");
  if (value_->size() > most) fail("found ", value_->size(), " entries, expected at most ", most, ".");
  std::vector<Node> out;
  out.reserve(value_->size());
  for (const auto& element : *value_) {
    const std::string place = base::join(place_, "[", out.size(), "]");
    out.push_back(Node(element, file_, place));
  }
  return out;
}

const std::string& Node::string() const {
  if (!value_->is_string()) fail("expected a string, found ", kind(), ".");
  return value_->get_ref<const std::string&>();
}

bool Node::boolean() const {
  if (!value_->is_boolean()) fail("expected true or false, found ", kind(), ".");
  return value_->get<bool>();
}

bool Node::boolean(const char* key, bool fallback) const {
  const auto member = find(key);
  return member ? member->boolean() : fallback;
}

void Node::require_room(std::size_t steps) const {
  if (steps >= kMaxSteps) fail("is one step more than the ", kMaxSteps, " allowed; use another tokenizer.");
}

std::int64_t Node::number(std::int64_t largest) const {
  const bool whole =
      value_->is_number_unsigned() && value_->get<std::uint64_t>() <= static_cast<std::uint64_t>(largest);
  if (!whole) fail("expected a whole number from 0 to ", largest, ", found ", shown(value_->dump()), ".");
  return value_->get<std::int64_t>();
}

}  // namespace retort::text
