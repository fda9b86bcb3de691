#include "retort/chat/template_filters.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <string>

#include "retort/chat/code_points.h"
#include "retort/chat/python_regex.h"
#include "retort/chat/python_text.h"
#include "retort/chat/template_arguments.h"
#include "retort/chat/template_methods.h"
#include "retort/chat/template_operators.h"
#include "retort/io/quote.h"

namespace retort::chat {
namespace {

// A filter at work.
struct FilterCall {
  std::string_view name;
  const Value& value;
  const Arguments& arguments;
  Budget& budget;

  Parameters parameters(std::initializer_list<std::string_view> names) const {
    return {"the filter " + io::quote(name), arguments, names};
  }
  /// The value as text, as Jinja's soft_str: what is marked safe stays so.
  Value text() const { return value.text() != nullptr ? value : make_text(to_text(value, budget), budget); }
};

Value defaulted(const FilterCall& call) {
  const auto parameters = call.parameters({"default_value", "boolean"});
  const bool missing = call.value.is_undefined() || (parameters.flag(1) && !is_true(call.value));
  return missing ? parameters.at_or(0, "") : call.value;
}

std::optional<std::string> indent_of(const Parameters& parameters, std::size_t index) {
  if (!parameters.has(index) || parameters.at(index).is_none()) return std::nullopt;
  if (const auto* text = parameters.at(index).text()) return *text;
  return std::string(static_cast<std::size_t>(std::clamp<std::int64_t>(parameters.whole(index, 0), 0, 1000)),
                     ' ');
}

Value json(const FilterCall& call) {
  const auto parameters = call.parameters({"ensure_ascii", "indent", "separators", "sort_keys"});
  JsonStyle style{
      .only_ascii = parameters.flag(0), .sort_keys = parameters.flag(3), .indent = indent_of(parameters, 1)};
  if (style.indent) style.item_separator = ",";
  if (parameters.has(2) && !parameters.at(2).is_none()) {
    const auto separators = items_of(parameters.at(2), call.budget);
    const bool two =
        separators.size() == 2 && separators[0].text() != nullptr && separators[1].text() != nullptr;
    if (!two) throw TemplateFault{"the filter \"tojson\" takes two texts for \"separators\""};
    style.item_separator = *separators[0].text();
    style.key_separator = *separators[1].text();
  }
  return make_text(to_json(call.value, style, call.budget), call.budget);
}

std::string escaped_for_html(std::string_view json) {
  std::string out;
  for (const char c : json) {
    static constexpr std::string_view kSigns = "<>&'";
    static constexpr std::array<const char*, 4> kEscapes{"\\u003c", "\\u003e", "\\u0026", "\\u0027"};
    if (const auto at = kSigns.find(c); at != kSigns.npos)
      out += kEscapes[at];
    else
      out += c;
  }
  return out;
}

Value trimmed(const FilterCall& call) {
  const auto parameters = call.parameters({"chars"});
  const Value text = call.text();
  return make_text(std::string(strip(*text.text(), parameters.text_or_null(0), Ends::both)), call.budget,
                   text.is_safe());
}

Value in_case(const FilterCall& call) {
  const auto none = call.parameters({});
  return call_method(call.text(), call.name, {}, call.budget);
}

// Jinja's own: words end at white space, hyphens and brackets.
Value titled_words(const FilterCall& call) {
  const auto none = call.parameters({});
  std::string out;
  bool in_word = false;
  const Value text = call.text();
  for_each_character(*text.text(), [&](std::string_view one) {
    const bool between = is_space(text::read_character(one.data()).code) || one == "-" || one == "(" ||
                         one == "{" || one == "[" || one == "<";
    out += between ? std::string(one) : in_word ? to_lower(one) : to_upper(one);
    in_word = !between;
  });
  return make_text(std::move(out), call.budget);
}

Value replaced_text(const FilterCall& call) {
  const auto parameters = call.parameters({"old", "new", "count"});
  const auto text = to_text(call.value, call.budget), old = to_text(parameters.at(0), call.budget),
             by = to_text(parameters.at(1), call.budget);
  const bool limited = parameters.has(2) && !parameters.at(2).is_none();
  Arguments arguments{{old, by, limited ? parameters.whole(2, -1) : std::int64_t{-1}}, {}};
  return call_method(text, "replace", arguments, call.budget);
}

Value indented(const FilterCall& call) {
  const auto parameters = call.parameters({"width", "first", "blank"});
  if (call.value.text() == nullptr || call.value.is_safe())
    throw TemplateFault{"the filter \"indent\" takes a text, found " + type_name(call.value)};
  const auto width = indent_of(parameters, 0).value_or("    ");
  const std::string text = *call.value.text() + "\n";  // as Jinja, so that an empty text has a line
  const auto lines = lines_of(text, false);
  std::string out;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    call.budget.make(lines[i].size() + width.size() + 1);
    if (i > 0) out += '\n';
    const bool indents = i == 0 ? parameters.flag(1) : parameters.flag(2) || !lines[i].empty();
    if (indents) out += width;
    out += lines[i];
  }
  return make_text(std::move(out), call.budget);
}

Value reversed(const FilterCall& call) {
  const auto none = call.parameters({});
  if (const auto* text = call.value.text()) {
    std::string out;
    for (const char* at = text->data() + text->size(); at != text->data();) {
      const char* before = text::previous_character(at);
      out.append(before, at);
      at = before;
    }
    return make_text(std::move(out), call.budget, call.value.is_safe());
  }
  Values items = items_of(call.value, call.budget);
  std::reverse(items.begin(), items.end());
  const auto* sequence = call.value.sequence();
  const bool was_generator = sequence != nullptr && sequence->kind == SequenceKind::generator;
  return make_sequence(was_generator ? SequenceKind::list : SequenceKind::generator, std::move(items),
                       call.budget);
}

// The number that a text is, for int() and float() of Python.
std::optional<double> parsed_real(std::string_view text) {
  text = strip(text, nullptr, Ends::both);
  if (text.find('_') != text.npos ||
      std::any_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) >= 0x80; }))
    throw TemplateFault{"it takes " + io::quote(text) + " for a number, which Retort lacks"};
  if (text.starts_with('+') && !text.substr(1).starts_with('-')) text.remove_prefix(1);
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = end == text.data() + text.size() && !text.empty() && text.back() != ')';
  if (!whole) return std::nullopt;
  if (error == std::errc::result_out_of_range)
    throw TemplateFault{"the number " + io::quote(text) + " is beyond what Retort reads"};
  return error == std::errc() ? std::optional(number) : std::nullopt;
}

std::optional<std::int64_t> parsed_whole(std::string_view text) {
  text = strip(text, nullptr, Ends::both);
  if (text.starts_with('+') && !text.substr(1).starts_with('-')) text.remove_prefix(1);
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (end != text.data() + text.size() || text.empty()) return std::nullopt;
  if (error == std::errc::result_out_of_range) throw TemplateFault{"a whole number has more than 64 bits"};
  return error == std::errc() ? std::optional(number) : std::nullopt;
}

Value whole_number(const FilterCall& call) {
  const auto parameters = call.parameters({"default", "base"});
  const Value otherwise = parameters.at_or(0, std::int64_t{0});
  if (parameters.whole(1, 10) != 10) throw TemplateFault{"the filter \"int\" has a base, which Retort lacks"};
  if (const auto whole = call.value.whole()) return *whole;
  std::optional<double> real;
  if (const auto* text = call.value.text()) {
    if (const auto whole = parsed_whole(*text)) return *whole;
    real = parsed_real(*text);
  } else if (call.value.as<double>() != nullptr) {
    real = call.value.number();
  } else if (call.value.is_undefined()) {
    (void)item_of(call.value, std::int64_t{0}, call.budget);  // which throws
  }
  if (!real || !std::isfinite(*real)) return otherwise;
  if (std::abs(*real) >= 9e18) throw TemplateFault{"a whole number has more than 64 bits"};
  return static_cast<std::int64_t>(*real);
}

Value real_number(const FilterCall& call) {
  const auto parameters = call.parameters({"default"});
  if (const auto real = call.value.number()) return *real;
  if (call.value.is_undefined()) (void)item_of(call.value, std::int64_t{0}, call.budget);  // which throws
  const auto real = call.value.text() != nullptr ? parsed_real(*call.value.text()) : std::nullopt;
  return real ? Value(*real) : parameters.at_or(0, 0.0);
}

Value rounded(const FilterCall& call) {
  const auto parameters = call.parameters({"precision", "method"});
  const auto precision = parameters.whole(0, 0);
  if (parameters.has(1) && parameters.text(1) != "common")
    throw TemplateFault{"the filter \"round\" has a method, which Retort lacks"};
  if (call.value.whole() && precision >= 0) return *call.value.whole();
  if (!call.value.number() || precision < 0 || precision > 300 || std::abs(*call.value.number()) > 1e300)
    throw TemplateFault{"the filter \"round\" takes a number, found " + type_name(call.value)};
  std::array<char, 1024> digits;
  const auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), *call.value.number(),
                                          std::chars_format::fixed, static_cast<int>(precision));
  double number = *call.value.number();
  if (error == std::errc()) std::from_chars(digits.data(), end, number);
  return number;
}

Value absolute(const FilterCall& call) {
  const auto none = call.parameters({});
  if (const auto whole = call.value.whole()) return *whole < 0 ? negative(*whole) : Value(*whole);
  if (const auto real = call.value.number()) return std::abs(*real);
  return negative(call.value);  // which throws
}

Value marked_safe(const FilterCall& call) {
  const auto none = call.parameters({});
  return make_text(to_text(call.value, call.budget), call.budget, true);
}

Value escaped_text(const FilterCall& call) {
  const auto none = call.parameters({});
  if (call.value.is_safe() && call.name != "forceescape") return call.value;
  return make_text(escaped(to_text(call.value, call.budget)), call.budget, true);
}

Value as_text(const FilterCall& call) {
  const auto none = call.parameters({});
  return call.text();
}

struct TextFilter {
  std::string_view name;
  Value (*call)(const FilterCall&);
};

constexpr TextFilter kTextFilters[] = {
    {"default", defaulted},   {"d", defaulted},
    {"tojson", json},         {"trim", trimmed},
    {"string", as_text},      {"upper", in_case},
    {"lower", in_case},       {"capitalize", in_case},
    {"title", titled_words},  {"replace", replaced_text},
    {"indent", indented},     {"reverse", reversed},
    {"int", whole_number},    {"float", real_number},
    {"round", rounded},       {"abs", absolute},
    {"safe", marked_safe},    {"e", escaped_text},
    {"escape", escaped_text}, {"forceescape", escaped_text},
};

}  // namespace

Value json_for_html(const Value& value, const Arguments& arguments, Budget& budget) {
  const FilterCall call{"tojson", value, arguments, budget};
  JsonStyle style{.only_ascii = true, .sort_keys = true, .indent = indent_of(call.parameters({"indent"}), 0)};
  if (style.indent) style.item_separator = ",";
  return make_text(escaped_for_html(to_json(value, style, budget)), budget, true);
}

Value replaced_by_regex(const Value& value, const Arguments& arguments, Budget& budget) {
  const FilterCall call{"regex_replace", value, arguments, budget};
  const auto parameters = call.parameters({"pattern", "repl", "count"});
  if (value.text() == nullptr)
    throw TemplateFault{"the filter \"regex_replace\" takes a text, found " + type_name(value)};
  budget.step(static_cast<std::int64_t>(value.text()->size()));
  try {
    const auto regex = PythonRegex::parse(parameters.text(0));
    return make_text(regex.replaced(*value.text(), parameters.text(1), parameters.whole(2, 0)), budget);
  } catch (const RegexFault& fault) {
    throw TemplateFault{"the pattern " + io::quote(parameters.text(0)) + " " + fault.reason};
  }
}

Value filtered(std::string_view name, const Value& value, const Arguments& arguments, Budget& budget) {
  budget.step();
  for (const auto& filter : kTextFilters)
    if (filter.name == name) return filter.call({name, value, arguments, budget});
  if (auto result = filtered_sequence(name, value, arguments, budget)) return *std::move(result);
  throw TemplateFault{"there is no filter " + io::quote(name)};
}

}  // namespace retort::chat
