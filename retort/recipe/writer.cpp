#include "retort/recipe/writer.h"

#include "retort/recipe/binder.h"
#include "retort/recipe/binding.h"

namespace retort::recipe {
namespace {

using base::Json;

/// Writes the keys of one map.
class MapWriter : public Binder {
 public:
  explicit MapWriter(Json& map) : map_(map) { map_ = Json::object(); }

  void number(const char* key, double& value, const Field& field) override { put(key, value, field); }
  void count(const char* key, std::int64_t& value, const Field& field) override {
    for (const auto& named : field.names)
      if (named.count == value) return put(key, std::string(named.word), field);
    put(key, value, field);
  }
  void seed(const char* key, std::uint64_t& value, const Field& field) override { put(key, value, field); }
  void flag(const char* key, bool& value, const Field& field) override { put(key, value, field); }
  void text(const char* key, std::string& value, const Field& field) override { put(key, value, field); }
  void texts(const char* key, std::vector<std::string>& value, const Field& field) override {
    put(key, value, field);
  }
  void counts(const char* key, std::vector<std::int64_t>& value, const Field& field) override {
    put(key, value, field);
  }
  void chats(const char* key, std::vector<base::Json>& value, const Field& field) override {
    Json all = Json::array();
    for (const Json& messages : value) {
      const bool question = messages.size() == 1 && messages[0].at("role") == "user";
      all.push_back(question ? messages[0].at("content") : messages);
    }
    put(key, all, field);
  }
  void word(const char* key, std::size_t& value, const Words& words, const Field& field) override {
    put(key, std::string(words.at(value)), field);
  }
  void share(const char* key, double& fraction, std::int64_t& count, const Field& field) override {
    if (fraction > 0)
      put(key, fraction, field);
    else
      put(key, count, field);
  }
  void group(const char* key, const Body& body, const Field& field) override {
    if (!field.written) return;
    MapWriter inner(map_[key]);
    body(inner);
  }
  void kind(const char* key, std::size_t& value, const Words& words, const Field& field,
            const KindBody& body) override {
    word(key, value, words, field);
    body(*this, value);
  }
  void items(const char* key, const Items& items, const Field&) override {
    Json all = items.shape == Shape::list ? Json::array() : Json::object();
    for (std::size_t i = 0; i < items.size(); ++i) {
      Json one;
      MapWriter inner(one);
      items.body(inner, i);
      if (items.shape == Shape::list) {
        all.push_back(std::move(one));
      } else {
        one.erase("name");
        all[items.name(i)] = std::move(one);
      }
    }
    map_[key] = std::move(all);
  }

 private:
  template <typename T>
  void put(const char* key, const T& value, const Field& field) {
    if (field.written) map_[key] = value;
  }

  Json& map_;
};

constexpr std::size_t kLineWidth = 120;

/// A number, true or false as JSON has it; every text in quotes, so that none is taken for something else.
std::string scalar(const Json& value) {
  std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  // Other readers take 1e-05 for a text: YAML 1.1 wants the point.
  if (const auto e = text.find('e'); value.is_number_float() && e != std::string::npos && text.find('.') > e)
    text.insert(e, ".0");
  return text;
}

std::string flow(const Json& value) {
  if (!value.is_structured()) return scalar(value);
  std::string text;
  for (const auto& [key, item] : value.items())
    text += (text.empty() ? "" : ", ") + (value.is_object() ? key + ": " : "") + flow(item);
  return value.is_object() ? "{" + text + "}" : "[" + text + "]";
}

void emit_entries(std::string& out, const Json& map, std::size_t indent);

/// What follows "key:" or "-".
void emit_value(std::string& out, const Json& value, std::size_t indent) {
  const std::string line = flow(value);
  if (!value.is_structured() || value.empty() || indent + line.size() <= kLineWidth) {
    out += " " + line + "\n";
    return;
  }
  out += "\n";
  if (value.is_object()) return emit_entries(out, value, indent);
  for (const Json& item : value) {
    out += std::string(indent, ' ') + "-";
    emit_value(out, item, indent + 2);
  }
}

void emit_entries(std::string& out, const Json& map, std::size_t indent) {
  for (const auto& [key, value] : map.items()) {
    out += std::string(indent, ' ') + key + ":";
    emit_value(out, value, indent + 2);
  }
}

}  // namespace

std::string yaml_of(const Json& resolved) {
  std::string out;
  for (const auto& [key, value] : resolved.items()) {
    if (key != "stages") {
      emit_entries(out, {{key, value}}, 0);
      continue;
    }
    out += "stages:\n";
    for (const auto& [name, stage] : value.items()) {
      out += "  - name: " + scalar(name) + "\n";
      emit_entries(out, stage, 4);
    }
  }
  return out;
}

Json to_json(const Recipe& recipe) {
  Json json;
  MapWriter writer(json);
  Recipe copy = recipe;  // a Binder takes what it may change
  bind(writer, copy);
  return json;
}

std::string to_yaml(const Recipe& recipe) {
  return yaml_of(to_json(recipe));
}

}  // namespace retort::recipe
