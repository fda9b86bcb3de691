#include "retort/base/json.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "retort/base/error.h"
#include "retort/base/printable.h"

namespace retort::base {
namespace {

// The names of all open objects, one after the other in one text: sets of strings take ten times as much.
class OpenNames {
 public:
  void open() { firsts_.push_back(ends_.size()); }
  void add(std::string_view name) {
    text_ += name;
    ends_.push_back(text_.size());
  }
  /// Ends the innermost object; throws where two of its names are equal.
  void close() {
    const std::size_t first = firsts_.back(), start = first == 0 ? 0 : ends_[first - 1];
    sorted_.clear();
    for (std::size_t i = first, begin = start; i < ends_.size(); begin = ends_[i++])
      sorted_.push_back(std::string_view(text_).substr(begin, ends_[i] - begin));
    std::sort(sorted_.begin(), sorted_.end());
    const auto twice = std::adjacent_find(sorted_.begin(), sorted_.end());
    if (twice != sorted_.end())
      throw JsonFault{join("the key ", quote(*twice), " stands twice in one object")};
    firsts_.pop_back();
    ends_.resize(first);
    text_.resize(start);
  }

 private:
  std::string text_;
  std::vector<std::size_t> ends_;    // of each name in text_
  std::vector<std::size_t> firsts_;  // of each open object, in ends_
  std::vector<std::string_view> sorted_;
};

// Checks what nlohmann's reader does not, and hands the rest on.
class Checker : public nlohmann::json_sax<Json> {
 public:
  Checker(JsonVisitor& visitor, const JsonLimits& limits) : visitor_(visitor), limits_(limits) {}

  bool null() override { return give(nullptr); }
  bool boolean(bool value) override { return give(value); }
  bool number_integer(number_integer_t value) override { return give(value); }
  bool number_unsigned(number_unsigned_t value) override { return give(value); }
  bool number_float(number_float_t value, const string_t&) override { return give(value); }
  bool string(string_t& value) override { return give(std::move(value)); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override {
    names_.open();
    return open(Json::object());
  }
  bool key(string_t& name) override {
    names_.add(name);
    visitor_.key(std::move(name));
    return true;
  }
  bool end_object() override {
    names_.close();
    return close();
  }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_array() override { return close(); }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception& error) override {
    // nlohmann's text reads "[json.exception...] parse error at line 1, column 2: syntax error ...": keep the
    // cause.
    const std::string text = error.what();
    const auto cut = text.find(": ");
    throw JsonFault{shortened(cut == std::string::npos ? text : text.substr(cut + 2)),
                    position > 0 ? position - 1 : 0};
  }

 private:
  // A string that never ends is quoted as a whole: its last characters tell where.
  static std::string shortened(const std::string& text) {
    constexpr std::string_view kQuote = "last read: '";
    constexpr std::size_t kKept = 40;
    const auto quote = text.find(kQuote);
    if (quote == std::string::npos || text.size() - quote <= kQuote.size() + kKept) return text;
    auto rest = text.size() - kKept;
    while (rest < text.size() && (text[rest] & 0xc0) == 0x80) ++rest;  // not within a character
    return text.substr(0, quote + kQuote.size()) + "..." + text.substr(rest);
  }

  void count() {
    if (++values_ > limits_.max_values) throw JsonFault{join("more than ", limits_.max_values, " values")};
  }
  bool give(Json value) {
    count();
    visitor_.scalar(std::move(value));
    return true;
  }
  bool open(Json empty) {
    count();
    if (++depth_ > limits_.max_depth)
      throw JsonFault{join("nested deeper than ", limits_.max_depth, " levels")};
    visitor_.begin(std::move(empty));
    return true;
  }
  bool close() {
    --depth_;
    visitor_.end();
    return true;
  }

  JsonVisitor& visitor_;
  const JsonLimits& limits_;
  OpenNames names_;
  std::size_t values_ = 0;
  int depth_ = 0;
};

// nlohmann's own builder searches all earlier keys of an object for each new one: a vocabulary of 100,000
// entries would take minutes.
class TreeBuilder : public JsonVisitor {
 public:
  void scalar(Json&& value) override { place(std::move(value)); }
  void begin(Json&& empty) override { open_.push_back(&place(std::move(empty))); }
  void key(std::string&& name) override { members(*open_.back()).emplace_back(std::move(name), Json()); }
  void end() override { open_.pop_back(); }

  Json root;

 private:
  using Members = std::vector<Json::object_t::value_type>;
  // The vector below ordered_json's object: appending to it skips the search for an equal key.
  static Members& members(Json& object) { return object.get_ref<Json::object_t&>(); }

  // Where the next value goes: the root, the member whose key came last, or the end of the array.
  Json& place(Json&& value) {
    if (open_.empty()) return root = std::move(value);
    if (open_.back()->is_object()) return members(*open_.back()).back().second = std::move(value);
    auto& elements = open_.back()->get_ref<Json::array_t&>();
    return elements.emplace_back(std::move(value));
  }

  std::vector<Json*> open_;
};

}  // namespace

void visit_json(std::string_view text, JsonVisitor& visitor, const JsonLimits& limits) {
  if (text.size() > limits.max_bytes)
    throw JsonFault{join(text.size(), " bytes, more than the ", limits.max_bytes, " allowed"),
                    limits.max_bytes};
  // nlohmann takes a zero byte for the end of the text and skips a byte-order mark; JSON allows neither.
  const std::size_t zero = text.find('\0');
  if (zero != std::string_view::npos) throw JsonFault{"a zero byte", zero};
  if (text.substr(0, 3) == "\xEF\xBB\xBF") throw JsonFault{"a byte-order mark", 0};
  Checker checker(visitor, limits);
  ensure(Json::sax_parse(text.begin(), text.end(), &checker), "a reader of JSON throws what is wrong");
}

Json parse_json(std::string_view text, const JsonLimits& limits) {
  TreeBuilder tree;
  visit_json(text, tree, limits);
  return std::move(tree.root);
}

}  // namespace retort::base
