#include "retort/chat/python_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "retort/chat/code_points.h"

namespace retort::chat {
namespace {

void append_hex(std::string& out, char32_t code, int digits) {
  for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4) out += "0123456789abcdef"[code >> shift & 0xF];
}

// What repr() writes as it is: everything but separators, controls, unassigned and private code points.  The
// layer's tables have letters, numbers, marks, punctuation and symbols.
bool is_printable(char32_t code) {
  using namespace text;
  return code == ' ' ||
         (character_classes()[code] & (kLetter | kNumber | kMark | kPunctuation | kSymbol)) != 0;
}

void append_escape(std::string& out, char32_t code) {
  out += '\\';
  if (code <= 0xFF) {
    out += 'x';
    append_hex(out, code, 2);
  } else if (code <= 0xFFFF) {
    out += 'u';
    append_hex(out, code, 4);
  } else {
    out += 'U';
    append_hex(out, code, 8);
  }
}

void append_repr(std::string& out, std::string_view one, char quote) {
  const char32_t code = text::read_character(one.data()).code;
  if (one.front() == quote || one == "\\")
    (out += '\\') += one;
  else if (one == "\n")
    out += "\\n";
  else if (one == "\r")
    out += "\\r";
  else if (one == "\t")
    out += "\\t";
  else if (is_printable(code))
    out += one;
  else
    append_escape(out, code);
}

class Writer {
 public:
  explicit Writer(Budget& budget) : budget_(budget) {}

  void repr(const Value& value) {
    budget_.step();
    if (const auto* text = value.text()) {
      add(value.is_safe() ? "Markup(" + repr_of(*text) + ")" : repr_of(*text));
    } else if (const auto* map = value.map()) {
      entries(*map);
    } else if (const auto* sequence = value.sequence()) {
      repr(*sequence);
    } else if (value.is_undefined()) {
      add("Undefined");
    } else if (const auto* truth = value.as<bool>()) {
      add(*truth ? "True" : "False");
    } else if (const auto* number = value.as<std::int64_t>()) {
      add(std::to_string(*number));
    } else if (const auto* real = value.as<double>()) {
      add(repr_of(*real));
    } else if (value.is_none()) {
      add("None");
    } else {
      throw TemplateFault{"it writes a " + type_name(value) + " as text, which Retort lacks"};
    }
  }

  std::string take() { return std::move(out_); }

 private:
  void add(std::string_view text) {
    budget_.make(text.size());
    out_ += text;
  }

  void entries(const Map& map) {
    add("{");
    const char* before = "";
    for (const auto& [key, value] : map.entries()) {
      add(before);
      before = ", ";
      repr(key);
      add(": ");
      repr(value);
    }
    add("}");
  }

  void repr(const Sequence& sequence) {
    if (sequence.kind == SequenceKind::range) {
      add("range(" + std::to_string(sequence.start) + ", " + std::to_string(sequence.stop));
      return add(sequence.stride == 1 ? ")" : ", " + std::to_string(sequence.stride) + ")");
    }
    static constexpr std::array<const char*, 7> kBegin{
        "[", "(", "", "dict_keys([", "dict_values([", "dict_items([", nullptr};
    static constexpr std::array<const char*, 7> kEnd{"]", ")", "", "])", "])", "])", nullptr};
    const auto kind = static_cast<std::size_t>(sequence.kind);
    if (kBegin[kind] == nullptr)
      throw TemplateFault{"it writes a generator as text; put the filter \"list\" behind it"};
    add(kBegin[kind]);
    const char* before = "";
    for (const Value& item : sequence.items) {
      add(before);
      before = ", ";
      repr(item);
    }
    if (sequence.kind == SequenceKind::tuple && sequence.items.size() == 1) add(",");
    add(kEnd[kind]);
  }

  Budget& budget_;
  std::string out_;
};

class JsonWriter {
 public:
  JsonWriter(const JsonStyle& style, Budget& budget) : style_(style), budget_(budget) {}

  void write(const Value& value) {
    budget_.step();
    if (const auto* text = value.text()) {
      string(*text);
    } else if (const auto* map = value.map()) {
      entries(*map);
    } else if (const auto* sequence = value.sequence();
               sequence != nullptr &&
               (sequence->kind == SequenceKind::list || sequence->kind == SequenceKind::tuple)) {
      items(*sequence);
    } else if (value.is_none() || value.number()) {
      add(scalar(value));
    } else {
      throw TemplateFault{"it writes a " + type_name(value) + " as JSON, which has no such value"};
    }
  }

  std::string take() { return std::move(out_); }

 private:
  void add(std::string_view text) {
    budget_.make(text.size());
    out_ += text;
  }

  static std::string scalar(const Value& value) {
    if (value.is_none()) return "null";
    if (const auto* truth = value.as<bool>()) return *truth ? "true" : "false";
    if (const auto* number = value.as<std::int64_t>()) return std::to_string(*number);
    const double real = *value.number();
    if (std::isnan(real)) return "NaN";
    if (std::isinf(real)) return real > 0 ? "Infinity" : "-Infinity";
    return repr_of(real);
  }

  void string(std::string_view text) {
    std::string quoted = "\"";
    for_each_character(text, [&](std::string_view one) { character(quoted, one); });
    add(quoted += '"');
  }

  void character(std::string& quoted, std::string_view one) const {
    static constexpr std::string_view kEscaped = "\"\\\n\r\t\f\b", kNames = "\"\\nrtfb";
    const char32_t code = text::read_character(one.data()).code;
    if (const auto at = kEscaped.find(one.front()); at != kEscaped.npos) {
      (quoted += '\\') += kNames[at];
    } else if (code < 0x20 || (style_.only_ascii && code > 0x7E)) {
      if (code > 0xFFFF) append_unit(quoted, 0xD800 + ((code - 0x10000) >> 10));
      append_unit(quoted, code > 0xFFFF ? 0xDC00 + ((code - 0x10000) & 0x3FF) : code);
    } else {
      quoted += one;
    }
  }

  static void append_unit(std::string& quoted, char32_t unit) {
    quoted += "\\u";
    append_hex(quoted, unit, 4);
  }

  void line() {
    if (!style_.indent) return;
    add("\n");
    for (int i = 0; i < level_; ++i) add(*style_.indent);
  }

  // `write_item` writes the item of a number.
  template <typename WriteItem>
  void listed(char begin, char end, std::size_t count, const WriteItem& write_item) {
    add({&begin, 1});
    ++level_;
    for (std::size_t i = 0; i < count; ++i) {
      if (i > 0) add(style_.item_separator);
      line();
      write_item(i);
    }
    --level_;
    if (count > 0) line();
    add({&end, 1});
  }

  void items(const Sequence& sequence) {
    listed('[', ']', sequence.items.size(), [&](std::size_t i) { write(sequence.items[i]); });
  }

  void entries(const Map& map) {
    auto entries = map.entries();
    if (style_.sort_keys)
      std::stable_sort(entries.begin(), entries.end(),
                       [&](const auto& a, const auto& b) { return less(a.first, b.first, budget_); });
    listed('{', '}', entries.size(), [&](std::size_t i) {
      const Value& key = entries[i].first;
      if (const auto* text = key.text())
        string(*text);
      else if (key.is_none() || key.number())
        string(scalar(key));
      else
        throw TemplateFault{"it writes a map as JSON whose key is of type " + type_name(key)};
      add(style_.key_separator);
      write(entries[i].second);
    });
  }

  const JsonStyle& style_;
  Budget& budget_;
  std::string out_;
  int level_ = 0;
};

}  // namespace

std::string repr_of(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number > 0 ? "inf" : "-inf";
  std::array<char, 64> buffer;
  const auto exponent_form =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), number, std::chars_format::scientific);
  const std::string_view shortest(buffer.data(), static_cast<std::size_t>(exponent_form.ptr - buffer.data()));
  int exponent = 0;
  const char* digits = shortest.data() + shortest.find('e') + 1;
  std::from_chars(*digits == '+' ? digits + 1 : digits, exponent_form.ptr, exponent);
  if (exponent < -4 || exponent >= 16) return std::string(shortest);
  std::array<char, 64> fixed;
  const auto end = std::to_chars(fixed.data(), fixed.data() + fixed.size(), number, std::chars_format::fixed);
  std::string text(fixed.data(), end.ptr);
  return text.find('.') == text.npos ? text + ".0" : text;
}

std::string repr_of(std::string_view text) {
  const bool single = text.find('\'') == text.npos || text.find('"') != text.npos;
  const char quote = single ? '\'' : '"';
  std::string out(1, quote);
  for_each_character(text, [&](std::string_view one) { append_repr(out, one, quote); });
  return out += quote;
}

std::string to_repr(const Value& value, Budget& budget) {
  Writer writer(budget);
  writer.repr(value);
  return writer.take();
}

std::string to_text(const Value& value, Budget& budget) {
  require_defined(value);
  if (value.is_undefined()) return {};
  if (const auto* text = value.text()) {
    budget.make(text->size());
    return *text;
  }
  return to_repr(value, budget);
}

std::string to_json(const Value& value, const JsonStyle& style, Budget& budget) {
  JsonWriter writer(style, budget);
  writer.write(value);
  return writer.take();
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&#34;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

}  // namespace retort::chat
