#pragma once
// Values of a template: those of Python that JSON and Jinja make.  Texts, lists and maps never change, so
// they are shared and hold no circles; namespaces alone are assigned to.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "retort/base/json.h"
#include "retort/chat/template_limits.h"

namespace retort::chat {

class Map;
class LoopState;
struct Callable;
struct Namespace;
struct Sequence;

/// What has no value; `why` is said where it is used.
struct Undefined {
  std::shared_ptr<const std::string> why;
  bool strict = false;  ///< whether every use is an error, as StrictUndefined has it
};
struct None {};
/// UTF-8.  `safe`: Markup of Jinja, which escapes what is added to it.
struct Text {
  std::shared_ptr<const std::string> bytes;
  bool safe = false;
};

class Value {
 public:
  using Data =
      std::variant<Undefined, None, bool, std::int64_t, double, Text, std::shared_ptr<const Sequence>,
                   std::shared_ptr<const Map>, std::shared_ptr<Namespace>, std::shared_ptr<const Callable>,
                   std::shared_ptr<LoopState>>;

  Value() = default;  ///< undefined
  Value(None none) : data_(none) {}
  Value(bool truth) : data_(truth) {}
  Value(std::int64_t number) : data_(number) {}
  Value(double number) : data_(number) {}
  Value(std::string text, bool safe = false)
      : data_(Text{std::make_shared<const std::string>(std::move(text)), safe}) {}
  Value(const char* text) : Value(std::string(text)) {}
  Value(Text text) : data_(std::move(text)) {}
  Value(std::shared_ptr<const Sequence> sequence) : data_(std::move(sequence)) {}
  Value(std::shared_ptr<const Map> map) : data_(std::move(map)) {}
  Value(std::shared_ptr<Namespace> space) : data_(std::move(space)) {}
  Value(std::shared_ptr<const Callable> callable) : data_(std::move(callable)) {}
  Value(std::shared_ptr<LoopState> loop) : data_(std::move(loop)) {}
  static Value undefined(std::string why);
  /// The same value; where it is undefined, every use but tests and the filter default is an error.
  Value as_strict() &&;

  template <typename T>
  const T* as() const {
    return std::get_if<T>(&data_);
  }
  bool is_undefined() const { return as<Undefined>() != nullptr; }
  bool is_none() const { return as<None>() != nullptr; }
  const std::string* text() const {
    const auto* text = as<Text>();
    return text != nullptr ? text->bytes.get() : nullptr;
  }
  bool is_safe() const { return text() != nullptr && as<Text>()->safe; }
  const Sequence* sequence() const {
    const auto* sequence = as<std::shared_ptr<const Sequence>>();
    return sequence != nullptr ? sequence->get() : nullptr;
  }
  const Map* map() const {
    const auto* map = as<std::shared_ptr<const Map>>();
    return map != nullptr ? map->get() : nullptr;
  }
  /// A whole number or a truth value, which counts as one in Python.
  std::optional<std::int64_t> whole() const;
  /// Any number, truth values included.
  std::optional<double> number() const;
  const Data& data() const { return data_; }

 private:
  Data data_;
};

using Values = std::vector<Value>;

enum class SequenceKind { list, tuple, range, keys, values, items, generator };

/// What is iterated over.  A generator gives each item once; `taken` says how many it has given.
struct Sequence {
  SequenceKind kind = SequenceKind::list;
  Values items;
  int depth = 1;
  std::int64_t start = 0, stop = 0, stride = 1;  ///< of a range
  mutable std::size_t taken = 0;
};

/// Keeps the order of its keys.
class Map {
 public:
  /// The last value of a key counts, at the place of the first.  Throws TemplateFault for a key that Python
  /// cannot hash.
  void set(Value key, Value value);
  const Value* find(const Value& key) const;
  const Value* find(std::string_view key) const;
  const std::vector<std::pair<Value, Value>>& entries() const { return entries_; }
  int depth() const { return depth_; }

 private:
  std::vector<std::pair<Value, Value>> entries_;
  std::unordered_map<std::string, std::size_t> index_;
  int depth_ = 1;
};

struct Namespace {
  std::unordered_map<std::string, Value> attributes;
};

struct Arguments {
  Values positional;
  std::vector<std::pair<std::string, Value>> named;
};

struct Callable {
  std::string name;
  std::function<Value(const Arguments&, Budget&)> call;
};

/// Throw TemplateFault where values lie too deep in each other.
Value make_sequence(SequenceKind kind, Values items, Budget& budget);
Value make_map(Map map, Budget& budget);
/// A text, whose bytes count.
Value make_text(std::string text, Budget& budget, bool safe = false);

/// What JSON says; throws TemplateFault for whole numbers beyond 64 bits.
Value from_json(const base::Json& json);

/// Throws TemplateFault for a value that is undefined and strict.
void require_defined(const Value& value);

/// As bool() of Python.
bool is_true(const Value& value);
/// As == of Python.
bool equal(const Value& a, const Value& b, Budget& budget);
/// As < of Python; throws TemplateFault for values that have no order.
bool less(const Value& a, const Value& b, Budget& budget);
/// The type's name in Python.
std::string type_name(const Value& value);
/// Items in their order, as iter() of Python gives them; throws TemplateFault for what has none.  A generator
/// is empty afterwards.
Values items_of(const Value& value, Budget& budget);
/// As len() of Python.
std::int64_t length_of(const Value& value);
/// As `item in container` of Python.
bool contains(const Value& container, const Value& item, Budget& budget);

}  // namespace retort::chat
