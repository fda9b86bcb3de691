#include "retort/recipe/document.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <charconv>
#include <locale>
#include <sstream>
#include <unordered_set>
#include <utility>

#include "retort/base/error.h"
#include "retort/base/utf8.h"
#include "retort/recipe/suggestion.h"

namespace retort::recipe {
namespace {

constexpr std::size_t kMaxBytes = std::size_t{1} << 20;
constexpr std::size_t kMaxDepth = 16;
constexpr std::size_t kMaxValues = 50'000;
constexpr const char* kNoAliases =
    "aliases are not supported; write the value out, and quote a text that begins with *";

/// Of an override the text itself is the place.
std::string place_of(const std::string& where, const YAML::Mark& mark) {
  return mark.is_null() || where.starts_with(kOverride) ? where : base::join(where, ":", mark.line + 1);
}

[[noreturn]] void refuse(const std::string& place, const std::string& what) {
  throw base::UsageError(base::join(place, ": ", what, what.ends_with('?') ? "" : "."));
}

/// Builds the tree from the parser's events; refusing inside an event stops the parser.
class TreeBuilder : public YAML::EventHandler {
 public:
  explicit TreeBuilder(std::string where) : where_(std::move(where)) {}

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t) override { add(mark, Value::Kind::null); }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override { refuse(place(mark), kNoAliases); }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                const std::string& text) override {
    if (!open_.empty() && open_.back()->kind == Value::Kind::map && !has_key_) return set_key(mark, text);
    if (tag != "?" && tag != "!" && !tag.empty())
      refuse(place(mark), "tags such as " + tag + " are not supported");
    Value& value = add(mark, Value::Kind::scalar);
    value.text = text;
    value.quoted = tag == "!";
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {
    enter(add(mark, Value::Kind::list));
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {
    enter(add(mark, Value::Kind::map));
  }
  void OnMapEnd() override { close(); }

  Value take() { return std::move(root_); }

 private:
  std::string place(const YAML::Mark& mark) const { return place_of(where_, mark); }

  void set_key(const YAML::Mark& mark, const std::string& text) {
    if (!keys_.back().insert(text).second)
      refuse(place(mark), "key '" + text + "' is given twice; keep one of them");
    key_ = text;
    key_place_ = place(mark);
    has_key_ = true;
  }

  Value& add(const YAML::Mark& mark, Value::Kind kind) {
    if (++count_ > kMaxValues)
      refuse(place(mark), base::join("more than ", kMaxValues, " values; is this a recipe?"));
    Value value;
    value.kind = kind;
    value.place = place(mark);
    if (open_.empty()) return root_ = std::move(value);
    Value& parent = *open_.back();
    if (parent.kind == Value::Kind::list) return parent.items.emplace_back(std::move(value));
    if (!has_key_) refuse(place(mark), "a key has to be a word");
    has_key_ = false;
    value.place = key_place_;
    return parent.entries.emplace_back(std::move(key_), std::move(value)).value;
  }

  void enter(Value& value) {
    if (open_.size() >= kMaxDepth)
      refuse(value.place, base::join("nested deeper than ", kMaxDepth, " levels"));
    open_.push_back(&value);  // stays in place: its parent grows only after it is closed
    keys_.emplace_back();
  }
  void close() {
    open_.pop_back();
    keys_.pop_back();
  }

  std::string where_;
  Value root_;
  std::vector<Value*> open_;
  std::vector<std::unordered_set<std::string>> keys_;  // of what is open: no key is looked for in a list
  std::string key_;
  std::string key_place_;
  bool has_key_ = false;
  std::size_t count_ = 0;
};

std::vector<std::string> split_path(std::string_view path) {
  std::vector<std::string> parts;
  for (std::size_t start = 0; start <= path.size();) {
    const std::size_t dot = std::min(path.find('.', start), path.size());
    parts.emplace_back(path.substr(start, dot - start));
    start = dot + 1;
  }
  return parts;
}

std::string label(const Value& item) {
  for (const char* key : {"name", "kind"})
    if (const Value* value = item.find(key); value && value->kind == Value::Kind::scalar) return value->text;
  return "";
}

Value& item_of(Value& list, const std::string& part, const std::string& place, const std::string& path) {
  std::vector<std::string> labels;
  for (Value& item : list.items) {
    labels.push_back(label(item));
    if (labels.back() == part) return item;
  }
  std::size_t index = 0;
  const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), index);
  if (error == std::errc() && end == part.data() + part.size() && index < list.items.size())
    return list.items[index];
  refuse(place, "'" + part + "' is no item of " + path + did_you_mean(part, labels));
}

Value& step_into(Value& node, const std::string& part, const std::string& place, const std::string& path) {
  if (node.kind == Value::Kind::list) return item_of(node, part, place, path);
  if (node.kind == Value::Kind::scalar)
    refuse(place, path + " is a single value and has no key '" + part + "'");
  node.kind = Value::Kind::map;
  if (Value* found = node.find(part)) return *found;
  Value& made = node.entries.emplace_back(part, Value{}).value;
  made.place = place;
  return made;
}

void set_place(Value& value, const std::string& place) {
  value.place = place;
  for (Value& item : value.items) set_place(item, place);
  for (auto& [key, entry] : value.entries) set_place(entry, place);
}

}  // namespace

const Value* Value::find(std::string_view key) const {
  for (const auto& [name, value] : entries)
    if (name == key) return &value;
  return nullptr;
}

Value* Value::find(std::string_view key) {
  return const_cast<Value*>(std::as_const(*this).find(key));
}

Value parse_yaml(std::string_view text, const std::string& where) {
  if (text.size() > kMaxBytes) refuse(where, base::join(text.size(), " bytes, expected at most ", kMaxBytes));
  if (text.find('\0') != std::string_view::npos) refuse(where, "holds a zero byte; expected YAML text");
  if (!base::is_utf8(text)) refuse(where, "not UTF-8; save it as UTF-8 text");
  std::istringstream in{std::string(text)};
  in.imbue(std::locale::classic());
  try {
    YAML::Parser parser(in);
    TreeBuilder builder(where);
    if (!parser.HandleNextDocument(builder)) return Value{Value::Kind::null, where, "", false, {}, {}};
    TreeBuilder second(where);
    if (parser.HandleNextDocument(second)) refuse(where, "holds several YAML documents; keep one");
    return builder.take();
  } catch (const YAML::Exception& fault) {
    const bool unknown_anchor = fault.msg.find("anchor") != std::string::npos;
    refuse(place_of(where, fault.mark),
           unknown_anchor ? kNoAliases : base::join("not valid YAML: ", fault.msg));
  }
}

void apply_override(Value& root, const std::string& assignment) {
  const std::string place = base::join(kOverride, " ", assignment);
  const std::size_t equals = assignment.find('=');
  if (equals == std::string::npos || equals == 0)
    refuse(place, "expected KEY=VALUE, for example stages.student.tokens=60k");
  const auto parts = split_path(std::string_view(assignment).substr(0, equals));
  if (parts.size() > kMaxDepth) refuse(place, base::join("nested deeper than ", kMaxDepth, " levels"));
  Value* node = &root;
  std::string path;
  for (const std::string& part : parts) {
    if (part.empty()) refuse(place, "the key has an empty part");
    node = &step_into(*node, part, place, path.empty() ? "the recipe" : path);
    path += (path.empty() ? "" : ".") + part;
  }
  *node = parse_yaml(std::string_view(assignment).substr(equals + 1), place);
  set_place(*node, place);
}

}  // namespace retort::recipe
