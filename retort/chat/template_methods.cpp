#include "retort/chat/template_methods.h"

#include <algorithm>
#include <functional>
#include <string>

#include "retort/chat/code_points.h"
#include "retort/chat/python_text.h"
#include "retort/chat/template_arguments.h"
#include "retort/chat/template_names.h"
#include "retort/chat/template_operators.h"
#include "retort/io/quote.h"

namespace retort::chat {
namespace {

// A method at work: the text, whether it is marked safe, and what it is given.
struct MethodCall {
  std::string_view name;
  const std::string& text;
  bool safe;
  const Arguments& arguments;
  Budget& budget;

  Parameters parameters(std::initializer_list<std::string_view> names) const {
    return {name, arguments, names};
  }
  Value made(std::string_view result) const { return make_text(std::string(result), budget, safe); }
  Value listed(const std::vector<std::string_view>& parts, SequenceKind kind = SequenceKind::list) const {
    Values values;
    budget.make(parts.size() * sizeof(Value));
    for (const auto part : parts) values.push_back(made(part));
    return make_sequence(kind, std::move(values), budget);
  }
};

Value stripped(const MethodCall& call) {
  const auto ends = call.name == "strip" ? Ends::both : call.name == "lstrip" ? Ends::left : Ends::right;
  return call.made(strip(call.text, call.parameters({"chars"}).text_or_null(0), ends));
}

Value split(const MethodCall& call) {
  const auto parameters = call.parameters({"sep", "maxsplit"});
  const auto most = parameters.whole(1, -1);
  const bool from_right = call.name == "rsplit";
  const auto* separator = parameters.text_or_null(0);
  if (separator != nullptr) {
    if (separator->empty()) throw TemplateFault{"it splits a text at an empty one"};
    return call.listed(split_at(call.text, *separator, most, from_right));
  }
  if (from_right && most >= 0)
    throw TemplateFault{"it splits from the right at white space, which Retort lacks"};
  return call.listed(split_at_space(call.text, most));
}

Value partition(const MethodCall& call) {
  const std::string& separator = call.parameters({"sep"}).text(0);
  if (separator.empty()) throw TemplateFault{"it splits a text at an empty one"};
  const bool from_right = call.name == "rpartition";
  const auto at = from_right ? call.text.rfind(separator) : call.text.find(separator);
  const std::string_view text = call.text;
  if (at == text.npos)
    return call.listed(from_right ? std::vector<std::string_view>{"", "", text}
                                  : std::vector<std::string_view>{text, "", ""},
                       SequenceKind::tuple);
  return call.listed({text.substr(0, at), separator, text.substr(at + separator.size())},
                     SequenceKind::tuple);
}

bool has_end(std::string_view text, const Value& end, bool at_start) {
  if (const auto* one = end.text()) return at_start ? text.starts_with(*one) : text.ends_with(*one);
  const auto* several = end.sequence();
  if (several == nullptr || several->kind != SequenceKind::tuple)
    throw TemplateFault{"startswith and endswith take a text or a tuple of texts, found " + type_name(end)};
  return std::any_of(several->items.begin(), several->items.end(),
                     [&](const Value& one) { return has_end(text, one, at_start); });
}

// The part that a start and an end, in characters, leave; and the characters before it.
std::pair<std::string_view, std::size_t> part_of(std::string_view text, const Parameters& parameters,
                                                 std::size_t start_at) {
  const auto size = static_cast<std::int64_t>(characters_in(text));
  const auto place = [&](std::size_t index, std::int64_t otherwise) {
    const bool given = parameters.has(index) && !parameters.at(index).is_none();
    const auto at = given ? parameters.whole(index, 0) : otherwise;
    return std::clamp<std::int64_t>(at < 0 ? at + size : at, 0, size);
  };
  if (!parameters.has(start_at)) return {text, 0};
  const auto begin = place(start_at, 0), end = place(start_at + 1, size);
  if (begin > end || parameters.whole(start_at, 0) > size) return {{}, text.npos};
  return {character_range(text, static_cast<std::size_t>(begin), static_cast<std::size_t>(end)),
          static_cast<std::size_t>(begin)};
}

Value starts_or_ends(const MethodCall& call) {
  const auto parameters = call.parameters({"prefix", "start", "end"});
  const auto [part, before] = part_of(call.text, parameters, 1);
  return before != call.text.npos && has_end(part, parameters.at(0), call.name == "startswith");
}

Value found(const MethodCall& call) {
  const auto parameters = call.parameters({"sub", "start", "end"});
  const auto [part, before] = part_of(call.text, parameters, 1);
  const std::string& sought = parameters.text(0);
  const auto at = before == part.npos    ? part.npos
                  : call.name == "rfind" ? part.rfind(sought)
                                         : part.find(sought);
  if (at != part.npos) return static_cast<std::int64_t>(before + characters_in(part.substr(0, at)));
  if (call.name == "index") throw TemplateFault{"index does not find " + io::quote(sought) + " in a text"};
  return std::int64_t{-1};
}

Value counted(const MethodCall& call) {
  const std::string& sought = call.parameters({"sub"}).text(0);
  if (sought.empty()) return static_cast<std::int64_t>(characters_in(call.text) + 1);
  return static_cast<std::int64_t>(split_at(call.text, sought, -1, false).size() - 1);
}

Value replaced_part(const MethodCall& call) {
  const auto parameters = call.parameters({"old", "new", "count"});
  const auto &old = parameters.text(0), &by = parameters.text(1);
  const auto count = parameters.whole(2, -1);
  const auto places = old.empty() ? call.text.size() + 1 : call.text.size() / old.size();
  call.budget.make(call.text.size() + places * by.size());
  return call.made(replaced(call.text, old, by, count));
}

Value without_end(const MethodCall& call) {
  const bool prefix = call.name == "removeprefix";
  const std::string& end = call.parameters({"end"}).text(0);
  std::string_view text = call.text;
  if (!end.empty() && prefix && text.starts_with(end)) text.remove_prefix(end.size());
  if (!end.empty() && !prefix && text.ends_with(end)) text.remove_suffix(end.size());
  return call.made(text);
}

Value joined_texts(const MethodCall& call) {
  const auto items = items_of(call.parameters({"iterable"}).at(0), call.budget);
  std::string out;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const auto* text = items[i].text();
    if (text == nullptr) throw TemplateFault{"join takes texts, found " + type_name(items[i])};
    call.budget.make(text->size() + call.text.size());
    if (i > 0) out += call.text;
    out += *text;
  }
  return Value(std::move(out));
}

// str.title: a letter behind one with case is small.
std::string titled_text(std::string_view text) {
  std::string out;
  bool behind_letter = false;
  for_each_character(text, [&](std::string_view one) {
    out += behind_letter ? to_lower(one) : capitalized(one);
    const auto code = text::read_character(one.data()).code;
    behind_letter = is_upper(code) || is_lower(code);
  });
  return out;
}

// Whether all characters are so, and there are some.
template <typename Belongs>
bool all_are(std::string_view text, const Belongs& belongs) {
  bool all = !text.empty();
  for_each_character(text,
                     [&](std::string_view one) { all &= belongs(text::read_character(one.data()).code); });
  return all;
}

// Some characters have case, and none has the other.
bool has_case(std::string_view text, bool upper) {
  bool some = false, other = false;
  for_each_character(text, [&](std::string_view one) {
    const auto code = text::read_character(one.data()).code;
    some |= upper ? is_upper(code) : is_lower(code);
    other |= upper ? is_lower(code) : is_upper(code);
  });
  return some && !other;
}

bool is_decimal(char32_t code) {
  if (code >= 0x80 && (text::character_classes()[code] & text::kNumber) != 0)
    throw TemplateFault{"isdigit meets a number beyond ASCII, which Retort lacks"};
  return code >= '0' && code <= '9';
}

Value is_of_class(const MethodCall& call) {
  const std::string& text = call.text;
  if (call.name == "isascii")
    return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
  if (call.name == "isspace") return all_are(text, is_space);
  if (call.name == "isdigit") return all_are(text, is_decimal);
  if (call.name == "isalpha")
    return all_are(text,
                   [](char32_t code) { return (text::character_classes()[code] & text::kLetter) != 0; });
  return has_case(text, call.name == "isupper");
}

Value in_other_case(const MethodCall& call) {
  if (call.name == "upper") return call.made(to_upper(call.text));
  if (call.name == "lower") return call.made(to_lower(call.text));
  if (call.name == "title") return call.made(titled_text(call.text));
  return call.made(capitalized(call.text));
}

// What a field of format() names: {} the next argument, {1} by its place, {name}.
Value field(const MethodCall& call, const std::string& name, std::size_t& next, bool& by_place_seen) {
  const bool by_place =
      !name.empty() && std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (name.empty() || (by_place && name.size() < 6)) {
    const auto at = name.empty() ? next++ : static_cast<std::size_t>(std::stoul(name));
    if ((by_place && next > 0) || (name.empty() && by_place_seen))
      throw TemplateFault{"format numbers some of its fields and others not"};
    by_place_seen |= by_place;
    if (at >= call.arguments.positional.size())
      throw TemplateFault{"format takes more arguments than it is given"};
    return call.arguments.positional[at];
  }
  for (const auto& [given, value] : call.arguments.named)
    if (given == name) return value;
  throw TemplateFault{"format has the field " + io::quote(name) + ", which it is not given or Retort lacks"};
}

Value formatted(const MethodCall& call) {
  std::string out;
  std::size_t next = 0;
  bool by_place_seen = false;
  std::string_view rest = call.text;
  while (!rest.empty()) {
    const auto at = rest.find_first_of("{}");
    out += rest.substr(0, at);
    if (at == rest.npos) break;
    rest.remove_prefix(at);
    if (rest.substr(0, 2) == "{{" || rest.substr(0, 2) == "}}") {
      out += rest.front();
      rest.remove_prefix(2);
      continue;
    }
    const auto end = rest.find('}');
    if (rest.front() == '}' || end == rest.npos)
      throw TemplateFault{"format has a bracket without the other"};
    const auto text =
        to_text(field(call, std::string(rest.substr(1, end - 1)), next, by_place_seen), call.budget);
    out += text;
    rest.remove_prefix(end + 1);
  }
  return call.made(out);
}

struct Method {
  std::string_view name;
  Value (*call)(const MethodCall&);
  bool keeps_safe = false;  ///< also of text that is marked safe
};

constexpr Method kTextMethods[] = {
    {"strip", stripped, true},
    {"lstrip", stripped, true},
    {"rstrip", stripped, true},
    {"split", split, true},
    {"rsplit", split, true},
    {"partition", partition},
    {"rpartition", partition},
    {"startswith", starts_or_ends, true},
    {"endswith", starts_or_ends, true},
    {"find", found, true},
    {"rfind", found, true},
    {"index", found, true},
    {"count", counted, true},
    {"replace", replaced_part},
    {"removeprefix", without_end},
    {"removesuffix", without_end},
    {"join", joined_texts},
    {"upper", in_other_case, true},
    {"lower", in_other_case, true},
    {"title", in_other_case, true},
    {"capitalize", in_other_case, true},
    {"isascii", is_of_class, true},
    {"isspace", is_of_class, true},
    {"isdigit", is_of_class, true},
    {"isalpha", is_of_class, true},
    {"isupper", is_of_class, true},
    {"islower", is_of_class, true},
    {"format", formatted},
    {"splitlines",
     [](const MethodCall& call) {
       return call.listed(lines_of(call.text, call.parameters({"keepends"}).flag(0)));
     },
     true},
};

Value call_text_method(const Value& value, std::string_view name, const Arguments& arguments,
                       Budget& budget) {
  const auto* method = std::find_if(std::begin(kTextMethods), std::end(kTextMethods),
                                    [&](const Method& one) { return one.name == name; });
  if (method == std::end(kTextMethods))
    throw TemplateFault{"it uses the method " + io::quote(name) + " of a text, which Retort lacks"};
  if (value.is_safe() && !method->keeps_safe)
    throw TemplateFault{"it calls " + io::quote(name) + " of a text that is marked safe, which Retort lacks"};
  budget.step(static_cast<std::int64_t>(value.text()->size() / 64));
  return method->call({name, *value.text(), value.is_safe(), arguments, budget});
}

Value call_map_method(const Value& value, std::string_view name, const Arguments& arguments, Budget& budget) {
  const Map& map = *value.map();
  if (name == "get") {
    const Parameters parameters(name, arguments, {"key", "default"});
    if (!arguments.named.empty()) throw TemplateFault{"get takes no arguments by name"};
    const Value* item = map.find(parameters.at(0));
    return item != nullptr ? *item : parameters.at_or(1, None{});
  }
  const Parameters none(name, arguments, {});
  if (name == "copy") return value;
  if (name != "items" && name != "keys" && name != "values")
    throw TemplateFault{"it uses the method " + io::quote(name) + " of a map, which Retort lacks"};
  Values items;
  budget.step(std::ssize(map.entries()));
  for (const auto& [key, item] : map.entries()) {
    if (name == "items")
      items.push_back(make_sequence(SequenceKind::tuple, {key, item}, budget));
    else
      items.push_back(name == "keys" ? key : item);
  }
  const auto kind = name == "items"  ? SequenceKind::items
                    : name == "keys" ? SequenceKind::keys
                                     : SequenceKind::values;
  return make_sequence(kind, std::move(items), budget);
}

Value call_list_method(const Value& value, std::string_view name, const Arguments& arguments,
                       Budget& budget) {
  const auto& items = value.sequence()->items;
  if (name == "copy") return value;
  const Parameters parameters(name, arguments, {"value"});
  const Value& sought = parameters.at(0);
  std::int64_t count = 0;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (!equal(items[i], sought, budget)) continue;
    if (name == "index") return static_cast<std::int64_t>(i);
    ++count;
  }
  if (name == "index") throw TemplateFault{"index does not find a value in a list"};
  return count;
}

}  // namespace

Value method_of(const Value& value, std::string_view name) {
  return std::make_shared<const Callable>(Callable{
      std::string(name), [value, name = std::string(name)](const Arguments& arguments, Budget& budget) {
        return call_method(value, name, arguments, budget);
      }});
}

Value call_method(const Value& value, std::string_view name, const Arguments& arguments, Budget& budget) {
  budget.step();
  if (value.text() != nullptr) return call_text_method(value, name, arguments, budget);
  if (value.map() != nullptr) return call_map_method(value, name, arguments, budget);
  return call_list_method(value, name, arguments, budget);
}

}  // namespace retort::chat
