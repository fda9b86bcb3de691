#include "retort/text/tokenizer_description.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "retort/base/error.h"
#include "retort/base/files.h"
#include "retort/base/json.h"
#include "retort/io/model_directory.h"
#include "retort/io/tokenizer_file.h"
#include "retort/text/node.h"
#include "retort/text/split.h"
#include "retort/text/tokenizer.h"

namespace retort::text {
namespace {

using base::Json;
namespace fs = std::filesystem;

std::string named(const Node& step) {
  const std::string& type = step.type();
  if (type == "Replace") return base::join("Replace ", shown(step.at("pattern").at("String").string()));
  if (type == "ByteLevel" && step.boolean("use_regex", true)) return "ByteLevel (gpt2)";
  if (type != "Split") return type;
  const Node pattern = step.at("pattern");
  const auto regex = pattern.find("Regex");
  if (!regex) return base::join("Split at ", shown(pattern.at("String").string()));
  const auto known = recognise(regex->string());
  return base::join("Split (", known ? std::string(name_of(*known)) : shown(regex->string()), ")");
}

void add_steps(const Node& node, std::vector<std::string>& steps) {
  if (node.type() != "Sequence") return steps.push_back(named(node));
  const auto parts = node.find("normalizers") ? node.at("normalizers") : node.at("pretokenizers");
  for (const Node& step : parts.elements()) add_steps(step, steps);
}

Json read_beside(const fs::path& directory, const char* name) try {
  if (!fs::is_regular_file(directory / name)) return Json::object();
  Json json = base::parse_json(base::read_file(directory / name));
  return json.is_object() ? json : Json::object();
} catch (const base::JsonFault&) {
  return Json::object();  // whoever needs the file says so
}

std::string text_of(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

// That of LlamaTokenizer puts U+2581 before a text that does not begin with it, whatever the file says.  A
// file with this word anywhere is taken as it is: transformers looks for no more.
bool another_class_cuts(const std::string& file, const Json& tokenizer, const Json& config,
                        const Json& tokenizer_config) {
  if (file.find("\"ByteLevel\"") != std::string::npos) return false;
  const std::string name = text_of(tokenizer_config, "tokenizer_class");
  const auto normalizer = tokenizer.find("normalizer");
  return (name == "LlamaTokenizer" || name == "LlamaTokenizerFast") &&
         text_of(config, "model_type") == "llama" && normalizer != tokenizer.end() && !normalizer->is_null();
}

// The conditions under which transformers warns.
bool cuts_unlike_mistral(const std::vector<std::string>& steps, const Json& config, std::int64_t tokens) {
  constexpr std::array kTypes{"mistral", "mistral3", "voxtral", "ministral", "pixtral"};
  constexpr std::int64_t kOldVocabulary = 100'000;  // Mistral's vocabularies without tekken are smaller
  const std::string version = text_of(config, "transformers_version");
  return tokens > kOldVocabulary && (version.empty() || version < "5") &&
         std::ranges::find(kTypes, text_of(config, "model_type")) != kTypes.end() &&
         std::ranges::find(steps, "Split (tekken)") == steps.end();
}

}  // namespace

TokenizerDescription describe_tokenizer(const fs::path& path) {
  const Tokenizer tokenizer = Tokenizer::from_file(path);
  const io::TokenizerText file = io::read_tokenizer_text(path, kLargestTokenizerFile);
  const Json json = base::parse_json(file.text, {.max_bytes = kLargestTokenizerFile});
  const Node root(json, file.where);
  TokenizerDescription description{fs::path(file.where).filename().string(), {}, {}};
  for (const char* part : {"normalizer", "pre_tokenizer", "model"})
    if (const auto node = root.find(part)) add_steps(*node, description.steps);
  const Json config = read_beside(path, "config.json");
  if (another_class_cuts(file.text, json, config, read_beside(path, "tokenizer_config.json")))
    description.notes.emplace_back(
        "tokenizer_config.json names the class LlamaTokenizer, for which transformers leaves out the steps "
        "of "
        "tokenizer.json: a text that begins with a space has other ids there.");
  if (cuts_unlike_mistral(description.steps, config, tokenizer.vocab_size()))
    description.notes.emplace_back(
        "the tokenizer cuts text by another expression than Mistral's own (tekken); set fix_mistral_regex to "
        "true "
        "in tokenizer_config.json to cut as the model was trained.");
  return description;
}

}  // namespace retort::text
