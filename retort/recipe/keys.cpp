#include <algorithm>

#include "retort/base/error.h"
#include "retort/base/json.h"
#include "retort/recipe/binder.h"
#include "retort/recipe/binding.h"

namespace retort::recipe {
namespace {

struct Row {
  std::string key;
  std::string type;
  std::string default_value;
  std::string doc;
  std::vector<std::string_view> kinds;  ///< that have this key; empty: all

  bool same_key(const Row& other) const {
    return key == other.key && type == other.type && default_value == other.default_value && doc == other.doc;
  }
};

/// Lists the keys of one map and below.
class KeyLister : public Binder {
 public:
  KeyLister(std::string path, std::vector<Row>& rows) : path_(std::move(path)), rows_(rows) {}

  void number(const char* key, double& value, const Field& field) override {
    add(key, "number", base::Json(value).dump(), field);
  }
  void count(const char* key, std::int64_t& value, const Field& field) override {
    std::string type = "count", unset = std::to_string(value);
    for (const auto& named : field.names) {
      type += base::join(" | ", named.word);
      if (named.count == value) unset = named.word;
    }
    add(key, type, unset, field);
  }
  void seed(const char* key, std::uint64_t& value, const Field& field) override {
    add(key, "seed", std::to_string(value), field);
  }
  void flag(const char* key, bool& value, const Field& field) override {
    add(key, "true or false", value ? "true" : "false", field);
  }
  void text(const char* key, std::string& value, const Field& field) override {
    add(key, "text", value.empty() ? "empty" : value, field);
  }
  void texts(const char* key, std::vector<std::string>&, const Field& field) override {
    add(key, "texts", "empty", field);
  }
  void counts(const char* key, std::vector<std::int64_t>&, const Field& field) override {
    add(key, "counts", "empty", field);
  }
  void chats(const char* key, std::vector<base::Json>&, const Field& field) override {
    add(key, "texts or lists of messages", "empty", field);
  }
  void word(const char* key, std::size_t& value, const Words& words, const Field& field) override {
    std::string type;
    for (const auto& one : words) type += (type.empty() ? "" : " | ") + std::string(one);
    add(key, type, std::string(words.at(value)), field);
  }
  void share(const char* key, double&, std::int64_t&, const Field& field) override {
    add(key, "fraction or count", "", field);
  }
  void group(const char* key, const Body& body, const Field&) override {
    KeyLister inner(below(key), rows_);
    inner.kind_ = kind_;
    body(inner);
  }
  void kind(const char* key, std::size_t& value, const Words& words, const Field& field,
            const KindBody& body) override {
    word(key, value, words, field);
    const std::string_view outer = kind_;
    for (std::size_t k = 0; k < words.size(); ++k) {
      kind_ = words[k];
      body(*this, k);
    }
    kind_ = outer;
  }
  void items(const char* key, const Items& items, const Field& field) override {
    if (field.unset) add(key, "list", "", field);
    items.add();
    KeyLister inner(below(key) + (items.shape == Shape::list ? "[]" : ".<name>"), rows_);
    items.body(inner, items.size() - 1);
  }
  bool fills() const override { return true; }

 private:
  std::string below(const char* key) const { return path_.empty() ? key : path_ + "." + key; }

  void add(const char* key, std::string type, std::string default_value, const Field& field) {
    if (field.required) default_value = "required";
    if (field.unset) default_value = field.unset;
    Row row{below(key), std::move(type), std::move(default_value), field.doc, {}};
    if (!kind_.empty()) row.kinds.push_back(kind_);
    for (Row& seen : rows_) {
      if (!seen.same_key(row)) continue;
      for (const auto& kind : row.kinds)
        if (std::find(seen.kinds.begin(), seen.kinds.end(), kind) == seen.kinds.end())
          seen.kinds.push_back(kind);
      return;
    }
    rows_.push_back(std::move(row));
  }

  std::string path_;
  std::string_view kind_;
  std::vector<Row>& rows_;
};

std::string line_of(const Row& row) {
  std::string line = row.key + "\n    " + row.type + ", " +
                     (row.default_value == "required" ? "required" : "default " + row.default_value) + ": " +
                     row.doc;
  if (row.kinds.empty()) return line + "\n";
  line += " (";
  for (std::size_t i = 0; i < row.kinds.size(); ++i) line += (i ? ", " : "") + std::string(row.kinds[i]);
  return line + ")\n";
}

}  // namespace

std::string describe_keys() {
  std::vector<Row> rows;
  Recipe scratch;
  KeyLister lister("", rows);
  bind(lister, scratch);
  std::string text =
      "Counts may be written 60k, 1.5M or 2e5, fractions 60% or 0.6.  --set takes the same keys, with a "
      "stage or source\n"
      "by its name and a loss by its kind: --set stages.student.loss.kl_divergence.temperature=2\n\n";
  for (const Row& row : rows) text += line_of(row);
  return text;
}

}  // namespace retort::recipe
