#include "retort/io/yaml.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <locale>
#include <sstream>
#include <unordered_set>
#include <utility>

#include "retort/base/error.h"
#include "retort/base/utf8.h"

namespace retort::io {
namespace {

constexpr std::size_t kMaxValues = 50'000;
constexpr std::string_view kNullTag = "tag:yaml.org,2002:null";
constexpr const char* kNoAliases =
    "aliases are not supported; write the value out, and quote a text that begins with *";

std::string place_of(const std::string& where, YamlPlaces places, const YAML::Mark& mark) {
  return mark.is_null() || places == YamlPlaces::one ? where : base::join(where, ":", mark.line + 1);
}

[[noreturn]] void refuse(const std::string& place, const std::string& what) {
  throw base::UsageError(base::join(place, ": ", what, what.ends_with('?') ? "" : "."));
}

/// Builds the tree from the parser's events; refusing inside an event stops the parser.
class TreeBuilder : public YAML::EventHandler {
 public:
  TreeBuilder(std::string where, YamlPlaces places) : where_(std::move(where)), places_(places) {}

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t) override { add(mark, YamlValue::Kind::null); }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override { refuse(place(mark), kNoAliases); }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                const std::string& text) override {
    if (!open_.empty() && open_.back()->kind == YamlValue::Kind::map && !has_key_) return set_key(mark, text);
    if (tag == kNullTag) {
      add(mark, YamlValue::Kind::null);
      return;
    }
    if (tag != "?" && tag != "!" && !tag.empty()) refuse_tag(mark, tag);
    YamlValue& value = add(mark, YamlValue::Kind::scalar);
    value.text = text;
    value.quoted = tag == "!";
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {
    enter(add(mark, YamlValue::Kind::list));
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {
    enter(add(mark, YamlValue::Kind::map));
  }
  void OnMapEnd() override { close(); }

  YamlValue take() { return std::move(root_); }

 private:
  std::string place(const YAML::Mark& mark) const { return place_of(where_, places_, mark); }

  [[noreturn]] void refuse_tag(const YAML::Mark& mark, const std::string& tag) const {
    if (tag == "!function")
      refuse(place(mark),
             (has_key_ ? "key '" + key_ + "'" : "a value") +
                 " uses a Python function, which Retort does not run; write a template or a value");
    refuse(place(mark), "tags such as " + tag + " are not supported");
  }

  void set_key(const YAML::Mark& mark, const std::string& text) {
    if (!keys_.back().insert(text).second)
      refuse(place(mark), "key '" + text + "' is given twice; keep one of them");
    key_ = text;
    key_place_ = place(mark);
    has_key_ = true;
  }

  YamlValue& add(const YAML::Mark& mark, YamlValue::Kind kind) {
    if (++count_ > kMaxValues)
      refuse(place(mark), base::join("more than ", kMaxValues, " values; is this the right file?"));
    YamlValue value;
    value.kind = kind;
    value.place = place(mark);
    if (open_.empty()) return root_ = std::move(value);
    YamlValue& parent = *open_.back();
    if (parent.kind == YamlValue::Kind::list) return parent.items.emplace_back(std::move(value));
    if (!has_key_) refuse(place(mark), "a key has to be a word");
    has_key_ = false;
    value.place = key_place_;
    return parent.entries.emplace_back(std::move(key_), std::move(value)).value;
  }

  void enter(YamlValue& value) {
    if (open_.size() >= kMaxYamlDepth)
      refuse(value.place, base::join("nested deeper than ", kMaxYamlDepth, " levels"));
    open_.push_back(&value);  // stays in place: its parent grows only after it is closed
    keys_.emplace_back();
  }
  void close() {
    open_.pop_back();
    keys_.pop_back();
  }

  std::string where_;
  YamlPlaces places_;
  YamlValue root_;
  std::vector<YamlValue*> open_;
  std::vector<std::unordered_set<std::string>> keys_;  // of what is open: no key is looked for in a list
  std::string key_;
  std::string key_place_;
  bool has_key_ = false;
  std::size_t count_ = 0;
};

}  // namespace

const YamlValue* YamlValue::find(std::string_view key) const {
  for (const auto& [name, value] : entries)
    if (name == key) return &value;
  return nullptr;
}

YamlValue* YamlValue::find(std::string_view key) {
  return const_cast<YamlValue*>(std::as_const(*this).find(key));
}

YamlValue parse_yaml(std::string_view text, const std::string& where, YamlPlaces places) {
  if (text.size() > kMaxYamlBytes)
    refuse(where, base::join(text.size(), " bytes, expected at most ", kMaxYamlBytes));
  if (text.find('\0') != std::string_view::npos) refuse(where, "holds a zero byte; expected YAML text");
  if (!base::is_utf8(text)) refuse(where, "not UTF-8; save it as UTF-8 text");
  std::istringstream in{std::string(text)};
  in.imbue(std::locale::classic());
  try {
    YAML::Parser parser(in);
    TreeBuilder builder(where, places);
    if (!parser.HandleNextDocument(builder))
      return YamlValue{YamlValue::Kind::null, where, "", false, {}, {}};
    TreeBuilder second(where, places);
    if (parser.HandleNextDocument(second)) refuse(where, "holds several YAML documents; keep one");
    return builder.take();
  } catch (const YAML::Exception& fault) {
    const bool unknown_anchor = fault.msg.find("anchor") != std::string::npos;
    refuse(place_of(where, places, fault.mark),
           unknown_anchor ? kNoAliases : base::join("not valid YAML: ", fault.msg));
  }
}

}  // namespace retort::io
