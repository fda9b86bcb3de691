#include "retort/chat/template_files.h"

#include <algorithm>
#include <optional>

#include "retort/base/error.h"
#include "retort/chat/template_limits.h"
#include "retort/io/files_inside.h"
#include "retort/io/model_directory.h"
#include "retort/io/quote.h"

namespace retort::chat {
namespace {

using base::Json;
using base::ModelError;
using base::require;

constexpr std::size_t kLargestConfig = std::size_t{16} << 20;
constexpr std::string_view kFolder = "additional_chat_templates/";

std::string content_of(const io::FileToCopy& file, std::size_t max_bytes) {
  if (!file.source.empty()) return io::read_small_file(file.source, max_bytes);
  return file.content;
}

Json json_of(const io::FileToCopy& file, const std::string& where) {
  try {
    return base::parse_json(content_of(file, kLargestConfig), {.max_bytes = kLargestConfig});
  } catch (const base::JsonFault& fault) {
    throw ModelError(base::join(where, ": is not valid JSON: ", fault.reason, " (byte ", fault.byte, ")."));
  }
}

// `chat_template` of a JSON file: a text, or a list of {"name", "template"}.
void add_from_json(const Json& json, const std::string& where, TemplateSources& sources) {
  const auto found = json.is_object() ? json.find("chat_template") : json.end();
  if (!json.is_object() || found == json.end() || found->is_null()) return;
  sources.where = where;
  if (found->is_string()) {
    sources.named.emplace_back("default", found->get<std::string>());
    return;
  }
  bool ok = found->is_array();
  if (ok)
    for (const Json& one : *found)
      ok &= one.is_object() && one.contains("name") && one.at("name").is_string() &&
            one.contains("template") && one.at("template").is_string();
  require<ModelError>(ok, where,
                      ": \"chat_template\" is neither a text nor a list of objects with \"name\" and "
                      "\"template\"; fetch the model again.");
  for (const Json& one : *found)
    sources.named.emplace_back(one.at("name").get<std::string>(), one.at("template").get<std::string>());
}

// A token is a text, or an object with its content.
std::optional<std::string> token_of(const Json& json, const char* key) {
  const auto found = json.is_object() ? json.find(key) : json.end();
  if (!json.is_object() || found == json.end()) return std::nullopt;
  if (found->is_string()) return found->get<std::string>();
  if (found->is_object() && found->contains("content") && found->at("content").is_string())
    return found->at("content").get<std::string>();
  return std::nullopt;
}

void add_tokens(const Json& json, TemplateVariables& variables) {
  for (const char* key :
       {"bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"}) {
    const bool known =
        std::any_of(variables.begin(), variables.end(), [&](const auto& one) { return one.first == key; });
    if (auto token = token_of(json, key); token && !known) variables.emplace_back(key, std::move(*token));
  }
}

std::string listed_names(const TemplateSources& sources) {
  std::vector<std::string> names;
  for (const auto& [name, unused] : sources.named) names.push_back(name);
  return io::listed(names);
}

}  // namespace

TemplateSources find_templates(const base::Path& model) {
  TemplateSources sources;
  const auto files = io::accompanying_files(model);
  const auto find = [&](const char* name) -> const io::FileToCopy* {
    const auto found =
        std::find_if(files.begin(), files.end(), [&](const auto& file) { return file.name == name; });
    return found == files.end() ? nullptr : &*found;
  };
  const auto where_of = [&](const io::FileToCopy& file) {
    return file.source.empty() ? model.string() : file.source.string();
  };
  if (const auto* file = find("chat_template.jinja")) {
    sources.named.emplace_back("default", content_of(*file, kLargestTemplate));
    sources.where = where_of(*file);
  }
  for (const auto& file : files) {
    if (!file.name.string().starts_with(kFolder) || file.name.extension() != ".jinja") continue;
    sources.named.emplace_back(file.name.stem().string(), content_of(file, kLargestTemplate));
    if (sources.where.empty()) sources.where = where_of(file);
  }
  for (const char* name : {"tokenizer_config.json", "chat_template.json", "special_tokens_map.json"}) {
    const auto* file = find(name);
    if (file == nullptr) continue;
    const Json json = json_of(*file, where_of(*file));
    if (sources.named.empty()) add_from_json(json, where_of(*file), sources);
    if (std::string_view(name) != "chat_template.json") add_tokens(json, sources.variables);
  }
  if (sources.where.empty()) sources.where = model.string();
  return sources;
}

ChatTemplate choose_template(const TemplateSources& sources, bool with_tools, const std::string& name) {
  require<ModelError>(!sources.named.empty(), sources.where,
                      ": expected a chat template, found none; put one into chat_template.jinja beside the "
                      "tokenizer of a model "
                      "directory, or give the model plain text.");
  const auto named = [&](std::string_view wanted) {
    return std::find_if(sources.named.begin(), sources.named.end(),
                        [&](const auto& one) { return one.first == wanted; });
  };
  auto chosen = named(name.empty() ? (with_tools ? "tool_use" : "default") : name);
  if (chosen == sources.named.end() && name.empty()) chosen = named("default");
  require<ModelError>(chosen != sources.named.end(), sources.where, ": there is no chat template ",
                      io::quote(name.empty() ? "default" : name), ", found ", listed_names(sources),
                      "; name one of them.");
  return ChatTemplate::parse(chosen->second, sources.where, sources.variables);
}

}  // namespace retort::chat
