#include "retort/chat/template_value.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "retort/chat/code_points.h"

namespace retort::chat {
namespace {

constexpr std::size_t kPart = 96;  // bytes that a value takes beside its content

int depth_of(const Value& value) {
  if (const auto* sequence = value.sequence()) return sequence->depth;
  if (const auto* map = value.map()) return map->depth();
  return 0;
}

void require_depth(int depth) {
  if (depth > kDeepestValue) throw TemplateFault{"it puts lists into each other more than 200 deep"};
}

// Whole numbers are not rounded: 2^53 + 1 differs from 2^53.
std::optional<int> order_of_numbers(const Value& a, const Value& b) {
  const auto whole_a = a.whole(), whole_b = b.whole();
  if (whole_a && whole_b) return *whole_a < *whole_b ? -1 : *whole_a > *whole_b ? 1 : 0;
  const auto real_a = a.number(), real_b = b.number();
  if (!real_a || !real_b) return std::nullopt;
  const auto exact_a = static_cast<long double>(whole_a ? *whole_a : 0) + (whole_a ? 0.0L : *real_a);
  const auto exact_b = static_cast<long double>(whole_b ? *whole_b : 0) + (whole_b ? 0.0L : *real_b);
  if (std::isnan(exact_a) || std::isnan(exact_b)) return 2;
  return exact_a < exact_b ? -1 : exact_a > exact_b ? 1 : 0;
}

std::string key_of_number(const Value& value) {
  const auto whole = value.whole();
  if (whole) return "i" + std::to_string(*whole);
  const double real = *value.number();
  constexpr double kBeyond = 9223372036854775808.0;
  if (real == std::floor(real) && real >= -kBeyond && real < kBeyond)
    return "i" + std::to_string(static_cast<std::int64_t>(real));
  return "r" + std::string(reinterpret_cast<const char*>(&real), sizeof real);
}

// Equal keys have equal texts.
std::string key_of(const Value& value) {
  if (const auto* text = value.text()) return "s" + *text;
  if (value.number()) return key_of_number(value);
  if (value.is_none()) return "n";
  if (value.is_undefined()) return "u";
  const auto* sequence = value.sequence();
  if (sequence == nullptr || sequence->kind != SequenceKind::tuple)
    throw TemplateFault{"it takes a value of type " + type_name(value) + " for the key of a map"};
  std::string key = "t";
  for (const Value& item : sequence->items) {
    const auto part = key_of(item);
    key += std::to_string(part.size()) + ":" + part;
  }
  return key;
}

bool equal_sequences(const Sequence& a, const Sequence& b, Budget& budget) {
  if (&a == &b) return true;
  if (a.kind != b.kind) return false;
  if (a.kind != SequenceKind::list && a.kind != SequenceKind::tuple && a.kind != SequenceKind::range)
    throw TemplateFault{"it compares views of a map, which Retort lacks; compare lists"};
  return std::equal(a.items.begin(), a.items.end(), b.items.begin(), b.items.end(),
                    [&](const Value& one, const Value& other) { return equal(one, other, budget); });
}

bool equal_maps(const Map& a, const Map& b, Budget& budget) {
  if (&a == &b) return true;
  if (a.entries().size() != b.entries().size()) return false;
  for (const auto& [key, value] : a.entries()) {
    budget.step();
    const auto* other = b.find(key);
    if (other == nullptr || !equal(value, *other, budget)) return false;
  }
  return true;
}

[[noreturn]] void no_order(const Value& a, const Value& b) {
  throw TemplateFault{"it compares " + type_name(a) + " with " + type_name(b) + ", which have no order"};
}

bool contains_in_generator(const Sequence& sequence, const Value& item, Budget& budget) {
  while (sequence.taken < sequence.items.size())
    if (equal(sequence.items[sequence.taken++], item, budget)) return true;
  return false;
}

}  // namespace

Value Value::undefined(std::string why) {
  Value value;
  value.data_ = Undefined{std::make_shared<const std::string>(std::move(why))};
  return value;
}

Value Value::as_strict() && {
  if (auto* undefined = std::get_if<Undefined>(&data_)) undefined->strict = true;
  return std::move(*this);
}

std::optional<std::int64_t> Value::whole() const {
  if (const auto* number = as<std::int64_t>()) return *number;
  if (const auto* truth = as<bool>()) return *truth ? 1 : 0;
  return std::nullopt;
}

std::optional<double> Value::number() const {
  if (const auto* real = as<double>()) return *real;
  if (const auto number = whole()) return static_cast<double>(*number);
  return std::nullopt;
}

void Map::set(Value key, Value value) {
  const auto [entry, is_new] = index_.try_emplace(key_of(key), entries_.size());
  depth_ = std::max({depth_, 1 + depth_of(key), 1 + depth_of(value)});
  require_depth(depth_);
  if (is_new)
    entries_.emplace_back(std::move(key), std::move(value));
  else
    entries_[entry->second].second = std::move(value);
}

const Value* Map::find(const Value& key) const {
  const auto entry = index_.find(key_of(key));
  return entry == index_.end() ? nullptr : &entries_[entry->second].second;
}

const Value* Map::find(std::string_view key) const {
  const auto entry = index_.find("s" + std::string(key));
  return entry == index_.end() ? nullptr : &entries_[entry->second].second;
}

Value make_sequence(SequenceKind kind, Values items, Budget& budget) {
  budget.make(kPart + items.size() * sizeof(Value));
  auto sequence = std::make_shared<Sequence>();
  sequence->kind = kind;
  for (const Value& item : items) sequence->depth = std::max(sequence->depth, 1 + depth_of(item));
  require_depth(sequence->depth);
  sequence->items = std::move(items);
  return std::shared_ptr<const Sequence>(std::move(sequence));
}

Value make_map(Map map, Budget& budget) {
  budget.make(kPart + map.entries().size() * 8 * sizeof(Value));
  return std::make_shared<const Map>(std::move(map));
}

Value make_text(std::string text, Budget& budget, bool safe) {
  budget.make(kPart + text.size());
  return {std::move(text), safe};
}

Value from_json(const base::Json& json) {
  Budget unbounded;  // what is already in memory as JSON
  switch (json.type()) {
    case base::Json::value_t::null:
      return None{};
    case base::Json::value_t::boolean:
      return json.get<bool>();
    case base::Json::value_t::string:
      return json.get<std::string>();
    case base::Json::value_t::number_float:
      return json.get<double>();
    case base::Json::value_t::number_integer:
      return json.get<std::int64_t>();
    case base::Json::value_t::number_unsigned:
      if (json.get<std::uint64_t>() > std::numeric_limits<std::int64_t>::max())
        throw TemplateFault{"the number " + json.dump() + " has more than 64 bits"};
      return json.get<std::int64_t>();
    case base::Json::value_t::array: {
      Values items;
      for (const auto& item : json) items.push_back(from_json(item));
      return make_sequence(SequenceKind::list, std::move(items), unbounded);
    }
    case base::Json::value_t::object: {
      Map map;
      for (const auto& [key, value] : json.items()) map.set(key, from_json(value));
      return std::make_shared<const Map>(std::move(map));
    }
    default:
      throw TemplateFault{"a value of JSON has no kind"};
  }
}

void require_defined(const Value& value) {
  const auto* undefined = value.as<Undefined>();
  if (undefined != nullptr && undefined->strict)
    throw TemplateFault{undefined->why ? *undefined->why : std::string("it uses an undefined value")};
}

bool is_true(const Value& value) {
  require_defined(value);
  if (value.is_undefined() || value.is_none()) return false;
  if (const auto number = value.number()) return *number != 0;
  if (const auto* text = value.text()) return !text->empty();
  if (const auto* map = value.map()) return !map->entries().empty();
  if (const auto* sequence = value.sequence())
    return sequence->kind == SequenceKind::generator || !sequence->items.empty();
  return true;
}

bool equal(const Value& a, const Value& b, Budget& budget) {
  require_defined(a);
  require_defined(b);
  budget.step();
  if (const auto order = order_of_numbers(a, b)) return *order == 0;
  if (a.data().index() != b.data().index()) return false;
  if (a.text() != nullptr) {
    budget.step(static_cast<std::int64_t>(a.text()->size() / 64));
    return *a.text() == *b.text();
  }
  if (a.sequence() != nullptr) return equal_sequences(*a.sequence(), *b.sequence(), budget);
  if (a.map() != nullptr) return equal_maps(*a.map(), *b.map(), budget);
  if (const auto* space = a.as<std::shared_ptr<Namespace>>())
    return *space == *b.as<std::shared_ptr<Namespace>>();
  if (const auto* loop = a.as<std::shared_ptr<LoopState>>())
    return *loop == *b.as<std::shared_ptr<LoopState>>();
  if (a.as<std::shared_ptr<const Callable>>() != nullptr)
    throw TemplateFault{"it compares functions, which Retort lacks"};
  return a.is_none() || a.is_undefined();
}

bool less(const Value& a, const Value& b, Budget& budget) {
  budget.step();
  if (const auto order = order_of_numbers(a, b)) return *order == -1;
  if (a.text() != nullptr && b.text() != nullptr) return *a.text() < *b.text();
  const auto *left = a.sequence(), *right = b.sequence();
  const bool ordered = left != nullptr && right != nullptr && left->kind == right->kind &&
                       (left->kind == SequenceKind::list || left->kind == SequenceKind::tuple);
  if (!ordered) no_order(a, b);
  for (std::size_t i = 0; i < left->items.size() && i < right->items.size(); ++i)
    if (!equal(left->items[i], right->items[i], budget)) return less(left->items[i], right->items[i], budget);
  return left->items.size() < right->items.size();
}

std::string type_name(const Value& value) {
  static constexpr const char* kSequences[] = {"list",        "tuple",      "range",    "dict_keys",
                                               "dict_values", "dict_items", "generator"};
  if (const auto* sequence = value.sequence()) return kSequences[static_cast<int>(sequence->kind)];
  static constexpr const char* kNames[] = {"Undefined", "NoneType", "bool",       "int",
                                           "float",     "str",      "list",       "dict",
                                           "Namespace", "function", "LoopContext"};
  return kNames[value.data().index()];
}

Values items_of(const Value& value, Budget& budget) {
  require_defined(value);
  Values items;
  if (const auto* sequence = value.sequence()) {
    const auto first = sequence->kind == SequenceKind::generator ? sequence->taken : 0;
    budget.make((sequence->items.size() - first) * sizeof(Value));
    items.assign(sequence->items.begin() + static_cast<std::ptrdiff_t>(first), sequence->items.end());
    if (sequence->kind == SequenceKind::generator) sequence->taken = sequence->items.size();
  } else if (const auto* map = value.map()) {
    budget.make(map->entries().size() * sizeof(Value));
    for (const auto& [key, unused] : map->entries()) items.push_back(key);
  } else if (const auto* text = value.text()) {
    budget.make(text->size() * 2 * sizeof(Value));
    for_each_character(*text, [&](std::string_view one) { items.emplace_back(std::string(one)); });
  } else if (!value.is_undefined()) {
    throw TemplateFault{"it goes through " + type_name(value) + ", which has no items"};
  }
  budget.step(static_cast<std::int64_t>(items.size()));
  return items;
}

std::int64_t length_of(const Value& value) {
  require_defined(value);
  if (value.is_undefined()) return 0;
  if (const auto* text = value.text()) return static_cast<std::int64_t>(characters_in(*text));
  if (const auto* map = value.map()) return std::ssize(map->entries());
  const auto* sequence = value.sequence();
  if (sequence != nullptr && sequence->kind != SequenceKind::generator) return std::ssize(sequence->items);
  throw TemplateFault{"it asks for the length of " + type_name(value) + ", which has none"};
}

bool contains(const Value& container, const Value& item, Budget& budget) {
  require_defined(item);
  if (const auto* text = container.text()) {
    if (item.text() == nullptr)
      throw TemplateFault{"it looks for " + type_name(item) + " in a text; look for a text"};
    budget.step(static_cast<std::int64_t>(text->size() / 64));
    return text->find(*item.text()) != std::string::npos;
  }
  if (const auto* map = container.map()) return map->find(item) != nullptr;
  const auto* sequence = container.sequence();
  if (sequence == nullptr) {
    (void)items_of(container, budget);
    return false;
  }
  if (sequence->kind == SequenceKind::generator) return contains_in_generator(*sequence, item, budget);
  return std::any_of(sequence->items.begin(), sequence->items.end(),
                     [&](const Value& one) { return equal(one, item, budget); });
}

}  // namespace retort::chat
