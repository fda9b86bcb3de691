#include "retort/recipe/reader.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>

#include "retort/base/error.h"
#include "retort/base/units.h"
#include "retort/recipe/binder.h"
#include "retort/recipe/binding.h"
#include "retort/recipe/suggestion.h"

namespace retort::recipe {
namespace {

/// Only notes which keys a body visits, to tell a key of another kind from one that nobody knows.
class KeyCollector : public Binder {
 public:
  std::vector<std::string> keys;

  void number(const char* key, double&, const Field&) override { keys.emplace_back(key); }
  void count(const char* key, std::int64_t&, const Field&) override { keys.emplace_back(key); }
  void seed(const char* key, std::uint64_t&, const Field&) override { keys.emplace_back(key); }
  void flag(const char* key, bool&, const Field&) override { keys.emplace_back(key); }
  void text(const char* key, std::string&, const Field&) override { keys.emplace_back(key); }
  void texts(const char* key, std::vector<std::string>&, const Field&) override { keys.emplace_back(key); }
  void counts(const char* key, std::vector<std::int64_t>&, const Field&) override { keys.emplace_back(key); }
  void chats(const char* key, std::vector<base::Json>&, const Field&) override { keys.emplace_back(key); }
  void word(const char* key, std::size_t&, const Words&, const Field&) override { keys.emplace_back(key); }
  void share(const char* key, double&, std::int64_t&, const Field&) override { keys.emplace_back(key); }
  void group(const char* key, const Body&, const Field&) override { keys.emplace_back(key); }
  void kind(const char* key, std::size_t&, const Words&, const Field&, const KindBody&) override {
    keys.emplace_back(key);
  }
  void items(const char* key, const Items&, const Field&) override { keys.emplace_back(key); }
  bool fills() const override { return true; }
};

/// Ends the reading of a file that has kMaxMistakes.
struct Enough {};

/// The value as a person wrote it, for a message.
std::string shown(const Value& value) {
  switch (value.kind) {
    case Value::Kind::null:
      return "nothing";
    case Value::Kind::list:
      return "a list";
    case Value::Kind::map:
      return "a map";
    case Value::Kind::scalar:
      break;
  }
  return "'" + (value.text.size() > 60 ? value.text.substr(0, 60) + "..." : value.text) + "'";
}

std::string joined(const Words& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) text += (i ? ", " : "") + std::string(words[i]);
  return text;
}

std::vector<std::string> texts_of(const Words& words) {
  return {words.begin(), words.end()};
}

/// "60%" or "0.6".
std::optional<double> parse_fraction(std::string_view text) {
  if (!text.ends_with('%')) return base::parse_number(text);
  text.remove_suffix(1);
  const auto percent = base::parse_number(text);
  return percent ? std::optional(*percent / 100) : std::nullopt;
}

/// What is wrong with the range, or nothing.
std::string out_of_range(double value, const Field& field) {
  if (!(value > field.above)) return base::join("expected more than ", field.above);
  if (!(value >= field.at_least)) return base::join("expected at least ", field.at_least);
  if (!(value < field.below)) return base::join("expected less than ", field.below);
  if (!(value <= field.at_most)) return base::join("expected at most ", field.at_most);
  return "";
}

constexpr FormerKey kFormerKeys[] = {
    {"sizing",
     "no file of rates is read any more; leave the key out, and set width_multiple in the prune stage where "
     "other widths run better"}};

/// Reads the keys of one map.
class MapReader : public Binder {
 public:
  MapReader(const Value& map, std::string path, std::vector<std::string>& mistakes)
      : map_(map), path_(std::move(path)), mistakes_(mistakes) {
    if (map_.kind != Value::Kind::map) report(map_, path_, "expected keys and values, found " + shown(map_));
  }

  /// Reads with `body` and then reports the keys that it did not ask for.
  void read(const Body& body) {
    if (map_.kind != Value::Kind::map) return;
    body(*this);
    for (const auto& [key, value] : map_.entries)
      if (std::find(known_.begin(), known_.end(), key) == known_.end() && !may_be_known(key))
        report(value, below(key), unknown(key));
  }

  void number(const char* key, double& value, const Field& field) override {
    const Value* node = take(key, field);
    if (!node) return;
    const auto parsed = scalar(*node) ? parse_fraction(node->text) : std::nullopt;
    if (!parsed) return expected(*node, key, "a number");
    if (in_range(*node, key, *parsed, field)) value = *parsed;
  }

  void count(const char* key, std::int64_t& value, const Field& field) override {
    const Value* node = take(key, field);
    if (!node) return;
    for (const auto& named : field.names)
      if (scalar(*node) && node->text == named.word) {
        value = named.count;
        return;
      }
    read_count(*node, key, value, field);
  }

  void seed(const char* key, std::uint64_t& value, const Field& field) override {
    const Value* node = take(key, field);
    if (!node) return;
    std::uint64_t parsed = 0;
    const char* last = node->text.data() + node->text.size();
    const auto [end, error] = std::from_chars(node->text.data(), last, parsed);
    if (!scalar(*node) || error != std::errc() || end != last || node->text.empty())
      return expected(*node, key, "a whole number from 0 to 2^64 - 1");
    value = parsed;
  }

  void flag(const char* key, bool& value, const Field& field) override {
    const Value* node = take(key, field);
    if (!node) return;
    if (!scalar(*node) || (node->text != "true" && node->text != "false"))
      return expected(*node, key, "true or false");
    value = node->text == "true";
  }

  void text(const char* key, std::string& value, const Field& field) override {
    const Value* node = take(key, field);
    if (node && text_is_good(*node, key, field)) value = node->text;
  }

  void texts(const char* key, std::vector<std::string>& value, const Field& field) override {
    const Value* node = take(key, field);
    if (!node) return;
    value.clear();
    if (scalar(*node)) {
      if (text_is_good(*node, key, field)) value.push_back(node->text);
      return;
    }
    if (!is_list(*node, key, "a text or a list of texts", field)) return;
    for (const Value& item : node->items)
      if (text_is_good(item, key, field)) value.push_back(item.text);
  }

  void counts(const char* key, std::vector<std::int64_t>& value, const Field& field) override {
    const Value* node = take(key, field);
    if (!node || !is_list(*node, key, "a list of whole numbers", field)) return;
    value.clear();
    for (const Value& item : node->items) read_count(item, key, value.emplace_back(), field);
  }

  void chats(const char* key, std::vector<base::Json>& value, const Field& field) override {
    const Value* node = take(key, field);
    if (!node) return;
    value.clear();
    if (scalar(*node)) return read_chat(*node, key, value);
    if (!is_list(*node, key, "a text, or a list of texts and of lists of messages", field)) return;
    if (node->items.front().kind == Value::Kind::map) return read_chat(*node, key, value);
    for (const Value& item : node->items) read_chat(item, key, value);
  }

  void word(const char* key, std::size_t& value, const Words& words, const Field& field) override {
    if (const Value* node = take(key, field)) read_word(*node, key, value, words);
  }

  void share(const char* key, double& fraction, std::int64_t& count, const Field& field) override {
    const Value* node = take(key, field);
    if (!node) return;
    const double part = scalar(*node) ? parse_fraction(node->text).value_or(0) : 0;
    const std::int64_t whole = scalar(*node) ? base::parse_count(node->text).value_or(0) : 0;
    const bool is_part = part > 0 && part < 1;
    if (!is_part && whole < 2)
      return expected(*node, key, "a fraction between 0 and 1 such as 60%, or a count such as 3.3M");
    fraction = is_part ? part : 0;
    count = is_part ? 0 : whole;
  }

  void group(const char* key, const Body& body, const Field& field) override {
    static const Value empty{Value::Kind::map, "", "", false, {}, {}};
    const Value* node = take(key, field);
    note_nested(key, body);
    if (node)
      MapReader(*node, below(key), mistakes_).read(body);
    else if (!field.required)
      MapReader(empty, below(key), mistakes_).read(body);  // for defaults that depend on other keys
  }

  void kind(const char* key, std::size_t& value, const Words& words, const Field& field,
            const KindBody& body) override {
    const Value* node = take(key, field);
    const bool is_known = node && read_word(*node, key, value, words);
    std::vector<KeyCollector> keys(words.size());
    for (std::size_t each = 0; each < words.size(); ++each) body(keys[each], each);
    const auto meant_kind =
        is_known ? words.end() : std::find(words.begin(), words.end(), word_meant(node, words));
    if (!is_known) value = guessed_kind(keys, static_cast<std::size_t>(meant_kind - words.begin()));
    const bool is_sure = is_known || (meant_kind != words.end() && words[value] == *meant_kind);
    for (std::size_t other = 0; other < words.size(); ++other)
      if (other != value)
        for (const std::string& name : keys[other].keys) foreign_[name].push_back(words[other]);
    kind_ = words[value];
    kind_is_known_ = is_sure;
    body(*this, value);
  }

  void items(const char* key, const Items& items, const Field& field) override {
    const Value* node = take(key, field);
    if (!node) return;
    if (items.shape == Shape::map) return read_map(*node, key, items, field);
    if (node->kind == Value::Kind::map && node->place.starts_with(kOverride))
      return report(
          *node, below(key),
          "expected a list, found a map; a list that the recipe leaves to its default has no entry to "
          "change, so write it into the recipe, or give all of it: --set '" +
              below(key) + "=[...]'");
    if (!is_list(*node, key, "a list", field)) return;
    for (const Value& item : node->items) {
      const std::size_t index = items.size();
      items.add();
      const Value* name = items.shape == Shape::named_list ? item.find("name") : nullptr;
      const std::string label = name && scalar(*name) ? name->text : std::to_string(index);
      MapReader(item, below(key) + "." + label, mistakes_).read([&](Binder& inner) {
        items.body(inner, index);
      });
    }
  }

  bool fills() const override { return true; }
  bool given(const char* key) const override { return map_.find(key) != nullptr; }
  void mistake(const char* key, const std::string& what) override {
    const Value* node = map_.find(key);
    report(node ? *node : map_, *key ? below(key) : path_, what);
  }

 private:
  static bool scalar(const Value& value) { return value.kind == Value::Kind::scalar; }
  std::string below(const std::string& key) const { return path_.empty() ? key : path_ + "." + key; }

  void report(const Value& value, const std::string& path, const std::string& what) {
    mistakes_.push_back(value.place + ": " + (path.empty() ? "" : path + ": ") + what);
    if (mistakes_.size() == kMaxMistakes) throw Enough();
  }
  void expected(const Value& value, const char* key, const std::string& what) {
    report(value, below(key), "expected " + what + ", found " + shown(value));
  }

  /// The value of a key, which is known from now on; reports a required key that is missing.
  const Value* take(const char* key, const Field& field) {
    known_.emplace_back(key);
    const Value* node = map_.find(key);
    if (!node && field.required && kind_is_known_)
      report(map_, below(key), base::join("missing (", field.doc, ")"));
    return node;
  }

  /// Whether another kind than the guessed one has this key.
  bool may_be_known(const std::string& key) const { return !kind_is_known_ && foreign_.contains(key); }

  std::string unknown(const std::string& key) const {
    if (const auto other = foreign_.find(key); other != foreign_.end())
      return "a key of kind " + joined(other->second) + ", not of " + std::string(kind_);
    for (const auto& [former, advice] : kFormerKeys)
      if (key == former) return std::string(advice);
    std::vector<std::string> keys = known_;
    keys.insert(keys.end(), nested_.begin(), nested_.end());
    return "unknown key" + did_you_mean(key, keys);
  }

  /// Remembers the keys of a map below this one, for those who write them a level too high.
  void note_nested(const char* key, const Body& body) {
    KeyCollector collector;
    body(collector);
    for (const std::string& name : collector.keys) nested_.push_back(base::join(key, ".", name));
  }

  static std::string word_meant(const Value* node, const Words& words) {
    return node && scalar(*node) ? meant(node->text, texts_of(words)) : "";
  }

  /// The kind that knows most of the keys, of several the one that is `near`, so that other mistakes of a map
  /// without a kind are found as well.
  std::size_t guessed_kind(const std::vector<KeyCollector>& kinds, std::size_t near) const {
    const auto known_keys = [&](const KeyCollector& kind) {
      return std::count_if(map_.entries.begin(), map_.entries.end(), [&](const auto& entry) {
        return std::find(kind.keys.begin(), kind.keys.end(), entry.key) != kind.keys.end();
      });
    };
    std::vector<std::ptrdiff_t> known;
    for (const auto& kind : kinds) known.push_back(known_keys(kind));
    const auto best = std::max_element(known.begin(), known.end());
    return near < kinds.size() && known[near] == *best ? near
                                                       : static_cast<std::size_t>(best - known.begin());
  }

  bool in_range(const Value& node, const char* key, double value, const Field& field) {
    const std::string fault = out_of_range(value, field);
    if (!fault.empty()) report(node, below(key), fault + ", found " + shown(node));
    return fault.empty();
  }

  void read_count(const Value& node, const char* key, std::int64_t& value, const Field& field) {
    const auto parsed = scalar(node) ? base::parse_count(node.text) : std::nullopt;
    if (parsed.has_value()) {
      const std::int64_t count = *parsed;
      if (in_range(node, key, static_cast<double>(count), field)) value = count;
      return;
    }
    std::string wanted = "a whole number such as 512 or 60k";
    for (const auto& named : field.names) wanted += base::join(", or ", named.word);
    expected(node, key, wanted);
  }

  bool read_word(const Value& node, const char* key, std::size_t& value, const Words& words) {
    const auto found = std::find(words.begin(), words.end(), std::string_view(node.text));
    const bool good = scalar(node) && found != words.end();
    if (good)
      value = static_cast<std::size_t>(found - words.begin());
    else
      report(node, below(key),
             "expected " + std::string(words.size() > 1 ? "one of " : "") + joined(words) + ", found " +
                 shown(node) + did_you_mean(node.text, texts_of(words)));
    return good;
  }

  // What a user says, or messages of which that is the last.
  void read_chat(const Value& node, const char* key, std::vector<base::Json>& chats) {
    const auto wrong = [&](const Value& where) {
      expected(where, key, "a text, or messages such as {role: user, content: Hello}");
    };
    if (scalar(node) && !node.text.empty())
      return chats.push_back(base::Json::array({{{"role", "user"}, {"content", node.text}}}));
    if (node.kind != Value::Kind::list || node.items.empty()) return wrong(node);
    base::Json messages = base::Json::array();
    for (const Value& item : node.items) {
      const Value* role = item.kind == Value::Kind::map ? item.find("role") : nullptr;
      const Value* content = item.kind == Value::Kind::map ? item.find("content") : nullptr;
      const bool good = role && content && scalar(*role) && scalar(*content) && item.entries.size() == 2;
      if (!good) return wrong(item);
      constexpr std::array<std::string_view, 5> kRoles{"system", "developer", "user", "assistant", "tool"};
      if (std::find(kRoles.begin(), kRoles.end(), role->text) == kRoles.end())
        return expected(*role, key, "a role: system, user, assistant or tool");
      messages.push_back({{"role", role->text}, {"content", content->text}});
    }
    if (messages.back().at("role") == "assistant")
      return report(node, below(key), "ends with an answer; the model is to answer the last message");
    chats.push_back(std::move(messages));
  }

  bool text_is_good(const Value& node, const char* key, const Field& field) {
    const bool good = scalar(node) && (field.may_be_empty || !node.text.empty());
    if (!good) expected(node, key, "a text");
    return good;
  }

  bool is_list(const Value& node, const char* key, const char* what, const Field& field) {
    const bool good = node.kind == Value::Kind::list && (field.may_be_empty || !node.items.empty());
    if (!good)
      report(node, below(key),
             base::join("expected ", what, ", found ",
                        node.kind == Value::Kind::list ? "an empty one" : shown(node)));
    return good;
  }

  void read_map(const Value& node, const char* key, const Items& items, const Field& field) {
    if (node.kind != Value::Kind::map || (node.entries.empty() && !field.may_be_empty))
      return report(node, below(key),
                    "expected a map from names, found " +
                        (node.kind == Value::Kind::map ? std::string("an empty one") : shown(node)));
    for (const auto& [name, value] : node.entries) {
      const std::size_t index = items.size();
      items.add();
      items.name(index) = name;
      MapReader(value, below(key) + "." + name, mistakes_).read([&](Binder& inner) {
        items.body(inner, index);
      });
    }
  }

  const Value& map_;
  std::string path_;
  std::vector<std::string>& mistakes_;
  std::vector<std::string> known_;
  std::vector<std::string> nested_;  ///< "optim.lr": keys of the maps below
  std::map<std::string, Words> foreign_;
  std::string_view kind_;
  bool kind_is_known_ = true;
};

}  // namespace

std::span<const FormerKey> former_keys() {
  return kFormerKeys;
}

std::vector<std::string> read(const Value& root, Recipe& recipe) {
  std::vector<std::string> mistakes;
  try {
    MapReader(root, "", mistakes).read([&](Binder& binder) { bind(binder, recipe); });
  } catch (const Enough&) {
  }
  return mistakes;
}

}  // namespace retort::recipe
