#include "retort/base/json.h"

#include <unordered_set>
#include <vector>

#include "retort/base/error.h"

namespace retort::base {
namespace {

// Walks the text once without building a value: depth and duplicate keys are known before memory is spent.
class Inspector : public nlohmann::json_sax<Json> {
 public:
  explicit Inspector(int max_depth) : max_depth_(max_depth) {}

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override {
    keys_.emplace_back();
    return deeper();
  }
  bool key(string_t& name) override {
    if (keys_.back().insert(name).second) return true;
    reason = join("the key \"", name, "\" stands twice in one object");
    return false;
  }
  bool end_object() override {
    keys_.pop_back();
    --depth_;
    return true;
  }
  bool start_array(std::size_t) override { return deeper(); }
  bool end_array() override {
    --depth_;
    return true;
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& error) override {
    byte = position > 0 ? position - 1 : 0;
    // nlohmann's text reads "[json.exception...] parse error at line 1, column 2: syntax error ...": keep the cause.
    const std::string text = error.what();
    const auto cut = text.find(": ");
    reason = cut == std::string::npos ? text : text.substr(cut + 2);
    return false;
  }

  std::string reason;
  std::size_t byte = 0;

 private:
  bool deeper() {
    if (++depth_ <= max_depth_) return true;
    reason = join("nested deeper than ", max_depth_, " levels");
    return false;
  }

  int max_depth_;
  int depth_ = 0;
  std::vector<std::unordered_set<std::string>> keys_;
};

}  // namespace

Json parse_json(std::string_view text, const JsonLimits& limits) {
  if (text.size() > limits.max_bytes)
    throw JsonFault{join(text.size(), " bytes, more than the ", limits.max_bytes, " allowed"), limits.max_bytes};
  Inspector inspector(limits.max_depth);
  if (!Json::sax_parse(text.begin(), text.end(), &inspector)) throw JsonFault{inspector.reason, inspector.byte};
  return Json::parse(text.begin(), text.end());
}

}  // namespace retort::base
