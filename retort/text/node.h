#pragma once
// A value in tokenizer.json that knows where it stands, so that every complaint names file and place.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "retort/base/error.h"
#include "retort/base/json.h"

namespace retort::text {

class Node {
 public:
  using Value = base::Json;

  Node(const Value& value, std::string file) : value_(&value), file_(std::move(file)) {}

  /// Throws ModelError: "<file>: <place>: <message>".
  template <typename... Parts>
  [[noreturn]] void fail(const Parts&... parts) const {
    throw base::ModelError(base::join(file_, ": ", place_.empty() ? "" : place_ + ": ", parts...));
  }

  const Value& value() const { return *value_; }
  const std::string& file() const { return file_; }
  bool is_null() const { return value_->is_null(); }

  /// The member `key`; a ModelError if there is none.
  Node at(const char* key) const;
  /// The member `key`; nothing if it is absent or null.
  std::optional<Node> find(const char* key) const;
  /// The elements of an array; a ModelError if there are more than `most`.
  std::vector<Node> elements(std::size_t most) const;

  const std::string& string() const;
  bool boolean() const;
  bool boolean(const char* key, bool fallback) const;
  /// A whole number from 0 to `largest`.
  std::int64_t number(std::int64_t largest) const;
  /// Throws ModelError where a row of `steps` steps is full.
  void require_room(std::size_t steps) const;
  /// The member "type".
  const std::string& type() const { return at("type").string(); }

 private:
  Node(const Value& value, std::string file, std::string place)
      : value_(&value), file_(std::move(file)), place_(std::move(place)) {}
  std::string kind() const;

  const Value* value_;
  std::string file_;
  std::string place_;
};

/// `text` shortened and made printable for a message.
std::string shown(std::string_view text);

}  // namespace retort::text
