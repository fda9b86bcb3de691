#include "retort/base/json.h"

#include <unordered_set>
#include <utility>
#include <vector>

#include "retort/base/error.h"
#include "retort/base/printable.h"

namespace retort::base {
namespace {

// Builds the value and checks it on the way.  nlohmann's own builder searches all earlier keys of an object
// for each new one; here a hash set finds duplicates, so that a vocabulary of 100,000 entries takes linear
// time.
class Builder : public nlohmann::json_sax<Json> {
 public:
  explicit Builder(int max_depth) : max_depth_(max_depth) {}

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override {
    keys_.emplace_back();
    return open(Json::object());
  }
  bool key(string_t& name) override {
    if (keys_.back().insert(name).second) {
      members(*open_.back()).emplace_back(std::move(name), Json());
      return true;
    }
    reason = join("the key ", quote(name), " stands twice in one object");
    return false;
  }
  bool end_object() override {
    keys_.pop_back();
    open_.pop_back();
    return true;
  }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_array() override {
    open_.pop_back();
    return true;
  }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception& error) override {
    byte = position > 0 ? position - 1 : 0;
    // nlohmann's text reads "[json.exception...] parse error at line 1, column 2: syntax error ...": keep the
    // cause.
    const std::string text = error.what();
    const auto cut = text.find(": ");
    reason = shortened(cut == std::string::npos ? text : text.substr(cut + 2));
    return false;
  }

  Json root;
  std::string reason;
  std::size_t byte = 0;

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
  bool add(Json value) {
    place(std::move(value));
    return true;
  }
  bool open(Json container) {
    open_.push_back(&place(std::move(container)));
    if (static_cast<int>(open_.size()) <= max_depth_) return true;
    reason = join("nested deeper than ", max_depth_, " levels");
    return false;
  }

  int max_depth_;
  std::vector<Json*> open_;
  std::vector<std::unordered_set<std::string>> keys_;
};

}  // namespace

Json parse_json(std::string_view text, const JsonLimits& limits) {
  if (text.size() > limits.max_bytes)
    throw JsonFault{join(text.size(), " bytes, more than the ", limits.max_bytes, " allowed"),
                    limits.max_bytes};
  // nlohmann takes a zero byte for the end of the text and skips a byte-order mark; JSON allows neither.
  const std::size_t zero = text.find('\0');
  if (zero != std::string_view::npos) throw JsonFault{"a zero byte", zero};
  if (text.substr(0, 3) == "\xEF\xBB\xBF") throw JsonFault{"a byte-order mark", 0};
  Builder builder(limits.max_depth);
  if (!Json::sax_parse(text.begin(), text.end(), &builder)) throw JsonFault{builder.reason, builder.byte};
  return std::move(builder.root);
}

}  // namespace retort::base
