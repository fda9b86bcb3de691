#include <algorithm>
#include <string>
#include <utility>

#include "retort/chat/code_points.h"
#include "retort/chat/python_text.h"
#include "retort/chat/template_arguments.h"
#include "retort/chat/template_filters.h"
#include "retort/chat/template_operators.h"
#include "retort/io/quote.h"

namespace retort::chat {
namespace {

struct ListCall {
  std::string_view name;
  const Value& value;
  const Arguments& arguments;
  Budget& budget;

  std::string who() const { return "the filter " + io::quote(name); }
  Parameters parameters(std::initializer_list<std::string_view> names) const {
    return {who(), arguments, names};
  }
  Values items() const { return items_of(value, budget); }
  Value made(SequenceKind kind, Values values) const {
    return make_sequence(kind, std::move(values), budget);
  }
};

bool is_generator(const Value& value) {
  return value.sequence() != nullptr && value.sequence()->kind == SequenceKind::generator;
}

// Reads an attribute of attributes, "a.0.b", as Jinja's make_attrgetter; without a path the item itself.
class Path {
 public:
  explicit Path(const Value* attribute) {
    if (attribute == nullptr || attribute->is_none()) return;
    if (attribute->text() == nullptr) {
      parts_.push_back(*attribute);
      return;
    }
    for (const auto part : split_at(*attribute->text(), ".", -1, false)) {
      const bool digits = !part.empty() && part.size() < 10 &&
                          std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; });
      parts_.push_back(digits ? Value(std::int64_t{std::stol(std::string(part))}) : Value(std::string(part)));
    }
  }

  Value of(Value item, Budget& budget, const Value* otherwise = nullptr) const {
    for (const Value& part : parts_) {
      item = item_of(item, part, budget);
      if (otherwise != nullptr && !otherwise->is_none() && item.is_undefined()) item = *otherwise;
    }
    return item;
  }

 private:
  Values parts_;
};

Value without_case(const Value& value) {
  return value.text() != nullptr ? Value(to_lower(*value.text())) : value;
}

// Jinja takes what follows the name of a filter or a test.
Arguments from(const Arguments& arguments, std::size_t first) {
  Arguments rest{{}, arguments.named};
  for (std::size_t i = first; i < arguments.positional.size(); ++i)
    rest.positional.push_back(arguments.positional[i]);
  return rest;
}

std::string name_at(const ListCall& call, std::size_t index) {
  const auto* name = call.arguments.positional[index].text();
  if (name == nullptr)
    throw TemplateFault{call.who() + " takes a name, found " + type_name(call.arguments.positional[index])};
  return *name;
}

Value mapped(const ListCall& call) {
  Values out;
  if (!is_true(call.value)) return call.made(SequenceKind::generator, {});  // none and the like
  if (call.arguments.positional.empty()) {
    const Parameters parameters(call.who(), call.arguments, {"attribute", "default"});
    const Path path(&parameters.at(0));
    const Value* otherwise = parameters.has(1) ? &parameters.at(1) : nullptr;
    for (const Value& item : call.items()) out.push_back(path.of(item, call.budget, otherwise));
  } else {
    const auto name = name_at(call, 0);
    const auto rest = from(call.arguments, 1);
    for (const Value& item : call.items()) out.push_back(filtered(name, item, rest, call.budget));
  }
  return call.made(SequenceKind::generator, std::move(out));
}

Value selected(const ListCall& call) {
  if (!is_true(call.value)) return call.made(SequenceKind::generator, {});
  const bool by_attribute = call.name.ends_with("attr"), wanted = call.name.starts_with("select");
  const std::size_t test_at = by_attribute ? 1 : 0;
  const auto& given = call.arguments.positional;
  if (given.size() < test_at) throw TemplateFault{call.who() + " takes the name of an attribute, found none"};
  const Path path(by_attribute ? &given[0] : nullptr);
  const bool has_test = given.size() > test_at;
  const auto test = has_test ? name_at(call, test_at) : std::string();
  const auto rest = from(call.arguments, test_at + 1);
  Values out;
  for (const Value& item : call.items()) {
    const Value tested = path.of(item, call.budget);
    if ((has_test ? passes(test, tested, rest, call.budget) : is_true(tested)) == wanted) out.push_back(item);
  }
  return call.made(SequenceKind::generator, std::move(out));
}

Value joined_items(const ListCall& call) {
  const auto parameters = call.parameters({"d", "attribute"});
  const auto separator = parameters.has(0) ? to_text(parameters.at(0), call.budget) : "";
  const Path path(parameters.has(1) ? &parameters.at(1) : nullptr);
  std::string out;
  bool is_first = true;
  for (const Value& item : call.items()) {
    const auto text = to_text(path.of(item, call.budget), call.budget);
    call.budget.make(separator.size());
    if (!std::exchange(is_first, false)) out += separator;
    out += text;
  }
  return make_text(std::move(out), call.budget);
}

Value counted_items(const ListCall& call) {
  const auto none = call.parameters({});
  return length_of(call.value);
}

Value as_list(const ListCall& call) {
  const auto none = call.parameters({});
  return call.made(SequenceKind::list, call.items());
}

Value first_item(const ListCall& call) {
  const auto none = call.parameters({});
  if (is_generator(call.value)) {
    const Sequence& sequence = *call.value.sequence();
    if (sequence.taken < sequence.items.size()) return sequence.items[sequence.taken++];
    return Value::undefined("there is no first item, the list is empty");
  }
  const auto items = call.items();
  return items.empty() ? Value::undefined("there is no first item, the list is empty") : items.front();
}

Value last_item(const ListCall& call) {
  const auto none = call.parameters({});
  if (is_generator(call.value))
    throw TemplateFault{"the filter \"last\" takes a list, found a generator; put \"list\" before it"};
  const auto items = call.items();
  return items.empty() ? Value::undefined("there is no last item, the list is empty") : items.back();
}

Value entries(const ListCall& call) {
  const auto none = call.parameters({});
  if (!call.value.is_undefined() && call.value.map() == nullptr)
    throw TemplateFault{"the filter \"items\" takes a map, found " + type_name(call.value)};
  Values out;
  if (call.value.map() != nullptr)
    for (const auto& [key, item] : call.value.map()->entries())
      out.push_back(call.made(SequenceKind::tuple, {key, item}));
  return call.made(SequenceKind::generator, std::move(out));
}

// Items in the order of their keys; those of equal keys stay as they are, also where it is reversed.
Values in_order(Values items, const std::function<Value(const Value&)>& key_of, bool reverse,
                Budget& budget) {
  std::vector<std::pair<Value, Value>> keyed;
  budget.make(items.size() * 2 * sizeof(Value));
  for (Value& item : items) keyed.emplace_back(key_of(item), std::move(item));
  std::stable_sort(keyed.begin(), keyed.end(), [&](const auto& a, const auto& b) {
    return reverse ? less(b.first, a.first, budget) : less(a.first, b.first, budget);
  });
  for (std::size_t i = 0; i < items.size(); ++i) items[i] = std::move(keyed[i].second);
  return items;
}

Value sorted(const ListCall& call) {
  const auto parameters = call.parameters({"reverse", "case_sensitive", "attribute"});
  const Value* attribute = parameters.has(2) ? &parameters.at(2) : nullptr;
  if (attribute != nullptr && attribute->text() != nullptr &&
      attribute->text()->find(',') != std::string::npos)
    throw TemplateFault{"the filter \"sort\" has several attributes, which Retort lacks"};
  const Path path(attribute);
  const bool with_case = parameters.flag(1);
  const auto key_of = [&](const Value& item) {
    const Value key = path.of(item, call.budget);
    return with_case ? key : without_case(key);
  };
  return call.made(SequenceKind::list, in_order(call.items(), key_of, parameters.flag(0), call.budget));
}

Value sorted_entries(const ListCall& call) {
  const auto parameters = call.parameters({"case_sensitive", "by", "reverse"});
  const auto by = parameters.has(1) ? parameters.text(1) : "key";
  if (by != "key" && by != "value")
    throw TemplateFault{"the filter \"dictsort\" sorts by \"key\" or \"value\", found " + io::quote(by)};
  const Map* map = call.value.map();
  if (map == nullptr)
    throw TemplateFault{"the filter \"dictsort\" takes a map, found " + type_name(call.value)};
  Values items;
  for (const auto& [key, item] : map->entries()) items.push_back(call.made(SequenceKind::tuple, {key, item}));
  const bool with_case = parameters.flag(0);
  const auto key_of = [&](const Value& entry) {
    const Value& key = entry.sequence()->items[by == "key" ? 0 : 1];
    return with_case ? key : without_case(key);
  };
  return call.made(SequenceKind::list, in_order(std::move(items), key_of, parameters.flag(2), call.budget));
}

Value unique(const ListCall& call) {
  const auto parameters = call.parameters({"case_sensitive", "attribute"});
  const Path path(parameters.has(1) ? &parameters.at(1) : nullptr);
  Map seen;
  Values out;
  for (const Value& item : call.items()) {
    Value key = path.of(item, call.budget);
    if (!parameters.flag(0)) key = without_case(key);
    if (seen.find(key) != nullptr) continue;
    seen.set(key, true);
    out.push_back(item);
  }
  return call.made(SequenceKind::generator, std::move(out));
}

Value extreme(const ListCall& call) {
  const auto parameters = call.parameters({"case_sensitive", "attribute"});
  const Path path(parameters.has(1) ? &parameters.at(1) : nullptr);
  const auto key_of = [&](const Value& item) {
    const Value key = path.of(item, call.budget);
    return parameters.flag(0) ? key : without_case(key);
  };
  const auto items = call.items();
  if (items.empty()) return Value::undefined("there is no " + std::string(call.name) + " of an empty list");
  const Value* best = &items.front();
  for (const Value& item : items) {
    const bool better = call.name == "min" ? less(key_of(item), key_of(*best), call.budget)
                                           : less(key_of(*best), key_of(item), call.budget);
    if (better) best = &item;
  }
  return *best;
}

Value summed(const ListCall& call) {
  const auto parameters = call.parameters({"attribute", "start"});
  const Path path(parameters.has(0) ? &parameters.at(0) : nullptr);
  Value sum = parameters.at_or(1, std::int64_t{0});
  if (sum.text() != nullptr) throw TemplateFault{"the filter \"sum\" adds numbers, found a text"};
  for (const Value& item : call.items()) sum = arithmetic("+", sum, path.of(item, call.budget), call.budget);
  return sum;
}

Value batched(const ListCall& call) {
  const auto parameters = call.parameters({"linecount", "fill_with"});
  const auto size = parameters.whole(0, 0);
  const bool fills = parameters.has(1) && !parameters.at(1).is_none();
  if (size < 1 || size > kLongestRange || !parameters.has(0))
    throw TemplateFault{"the filter \"batch\" takes a size from 1 to 100,000"};
  Values out, batch;
  for (const Value& item : call.items()) {
    if (std::ssize(batch) == size) out.push_back(call.made(SequenceKind::list, std::exchange(batch, {})));
    batch.push_back(item);
  }
  while (fills && !batch.empty() && std::ssize(batch) < size) batch.push_back(parameters.at(1));
  if (!batch.empty()) out.push_back(call.made(SequenceKind::list, std::move(batch)));
  return call.made(SequenceKind::generator, std::move(out));
}

struct ListFilter {
  std::string_view name;
  Value (*call)(const ListCall&);
};

constexpr ListFilter kListFilters[] = {
    {"map", mapped},           {"select", selected},
    {"reject", selected},      {"selectattr", selected},
    {"rejectattr", selected},  {"join", joined_items},
    {"length", counted_items}, {"count", counted_items},
    {"list", as_list},         {"first", first_item},
    {"last", last_item},       {"items", entries},
    {"sort", sorted},          {"dictsort", sorted_entries},
    {"unique", unique},        {"min", extreme},
    {"max", extreme},          {"sum", summed},
    {"batch", batched},
};

}  // namespace

std::optional<Value> filtered_sequence(std::string_view name, const Value& value, const Arguments& arguments,
                                       Budget& budget) {
  for (const auto& filter : kListFilters)
    if (filter.name == name) return filter.call({name, value, arguments, budget});
  return std::nullopt;
}

}  // namespace retort::chat
