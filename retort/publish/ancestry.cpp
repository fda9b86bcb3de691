#include "retort/publish/ancestry.h"

#include <filesystem>

#include "retort/architecture/hf_config.h"
#include "retort/base/error.h"
#include "retort/base/json.h"
#include "retort/base/printable.h"
#include "retort/io/model_directory.h"

namespace retort::publish {
namespace {

namespace fs = std::filesystem;
using base::Json;

constexpr std::size_t kMostBytes = std::size_t{1} << 26, kMostAncestors = 32;

Json read_json(const base::Path& file) try {
  if (!fs::is_regular_file(file)) return {};
  return base::parse_json(base::read_file(file, kMostBytes), {.max_bytes = kMostBytes});
} catch (const base::JsonFault&) {
  return {};
} catch (const base::Error&) {
  return {};
}

const Json& field_of(const Json& object, const char* key) {
  static const Json kNull;
  return object.is_object() && object.contains(key) ? object.at(key) : kNull;
}

std::string text(const Json& object, const char* key) {
  const Json& value = field_of(object, key);
  return value.is_string() ? base::as_utf8(value.get<std::string>()) : "";
}

std::optional<architecture::Config> config_of(const base::Path& model) try {
  return architecture::read_config(model);
} catch (const base::Error&) {
  return std::nullopt;
}

// Where an input of a stage lies: as it was named, or beside the model that was made from it.
base::Path place_of(const Json& input, const base::Path& model) {
  std::error_code ignored;
  const auto is_model = [&](const base::Path& path) {
    return !path.empty() && (fs::is_directory(path, ignored) ||
                             (path.extension() == ".gguf" && fs::is_regular_file(path, ignored)));
  };
  const base::Path named(text(input, "directory")), beside = model.parent_path() / text(input, "name");
  if (is_model(named)) return named;
  return !text(input, "name").empty() && is_model(beside) ? beside : base::Path();
}

}  // namespace

std::vector<Ancestor> ancestry_of(const base::Path& model, const std::string& name) {
  std::vector<Ancestor> row;
  base::Path path = model;
  std::string called = name;
  while (row.size() < kMostAncestors) {
    Ancestor& one = row.emplace_back(Ancestor{.name = called, .config = config_of(path)});
    const Json file = read_json(path / "retort.json");
    const Json &made = field_of(file, "provenance"), &inputs = field_of(made, "inputs");
    one.kind = text(made, "kind");
    one.pattern = text(field_of(file, "lineage"), "pattern");
    if (const Json& data = field_of(made, "data"); data.is_array())
      for (const Json& source : data)
        if (source.is_string()) one.data.push_back(base::as_utf8(source.get<std::string>()));
    if (!inputs.is_array() || inputs.empty()) break;
    if (inputs.size() > 1) one.teacher = text(inputs[1], "name");
    const base::Path from = place_of(inputs[0], path);
    called = text(inputs[0], "name");
    if (from.empty()) {
      row.push_back({.name = called});
      break;
    }
    path = from;
  }
  // A directory's last part says more than the path that a recipe has.
  if (row.size() > 1 && row.back().kind.empty())
    if (const std::string own = own_name(path); !own.empty()) row.back().name = own;
  return row;
}

std::string own_name(const base::Path& model) try {
  if (model.extension() != ".gguf") return text(read_json(model / "config.json"), "_name_or_path");
  const auto said = io::ModelDirectory::open(model).metadata();
  const auto name = said.find("general.name");
  return name == said.end() ? "" : base::as_utf8(name->second);
} catch (const base::Error&) {
  return "";
}

}  // namespace retort::publish
