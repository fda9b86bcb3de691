#include "retort/text/tokenizer_description.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "retort/base/error.h"
#include "retort/base/files.h"
#include "retort/base/json.h"
#include "retort/io/files_inside.h"
#include "retort/io/model_directory.h"
#include "retort/io/quote.h"
#include "retort/io/tokenizer_file.h"
#include "retort/text/limits.h"
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
  for (const Node& step : parts.elements(kMaxSteps)) add_steps(step, steps);
}

Json read_beside(const fs::path& directory, const char* name) try {
  if (!fs::is_regular_file(directory / name)) return Json::object();
  constexpr std::size_t kMostBytes = std::size_t{1} << 24;  // those with thousands of added tokens pass 1 MiB
  Json json = base::parse_json(base::read_file(io::resolve_inside(directory, name), kMostBytes),
                               {.max_bytes = kMostBytes});
  return json.is_object() ? json : Json::object();
} catch (const base::JsonFault&) {
  return Json::object();  // whoever needs the file says so
}

std::string text_of(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

// Classes of transformers that take the vocabulary and the merges of tokenizer.json, and steps of their own.
struct BuiltClass {
  std::string_view name;
  std::vector<std::string> steps;
};

const std::vector<BuiltClass>& built_classes() {
  static const std::vector<BuiltClass> classes{
      {"GPT2Tokenizer", {"ByteLevel (gpt2)", "BPE"}},
      {"Qwen2Tokenizer", {"NFC", "Split (qwen2)", "ByteLevel", "BPE"}},
      {"GPTNeoXTokenizer", {"NFC", "ByteLevel (gpt2)", "BPE"}},
      {"GemmaTokenizer", {"Replace \" \"", "Split at \" \"", "BPE"}},
      {"LlamaTokenizer", {"Metaspace", "BPE"}},
      {"CodeLlamaTokenizer", {"Metaspace", "BPE"}}};
  return classes;
}

std::string in_a_row(const std::vector<std::string>& steps) {
  std::string text;
  for (const auto& step : steps) text += (text.empty() ? "" : ", ") + step;
  return text;
}

// Which steps a class has in place of those of the file; empty where it has none of its own, or the same.
// That of Llama puts U+2581 before a text that does not begin with it.  A file with the word ByteLevel
// anywhere is taken as it is there: transformers looks for no more.
std::string steps_of_class(const std::string& name, const std::string& file,
                           const std::vector<std::string>& steps) {
  if (name == "LlamaTokenizer" && file.find("\"ByteLevel\"") != std::string::npos) return "";
  for (const auto& built : built_classes())
    if (name == built.name) return steps == built.steps ? "" : in_a_row(built.steps);
  return "";
}

// As transformers looks it up: the fast ones are the only ones.
std::string class_of(const TokenizerHabits& habits, const Json& tokenizer_config, const Json& config) {
  std::string name = habits.tokenizer_class_is_fixed ? "" : text_of(tokenizer_config, "tokenizer_class");
  if (name.empty() && !habits.tokenizer_class_is_fixed) name = text_of(config, "tokenizer_class");
  if (name.empty()) name = habits.tokenizer_class;
  constexpr std::string_view kFast = "Fast";
  if (name.ends_with(kFast)) name.resize(name.size() - kFast.size());
  return name;
}

// The conditions under which transformers warns.
bool is_cut_otherwise(const std::vector<std::string>& steps, const std::string& version,
                      std::int64_t tokens) {
  constexpr std::int64_t kLargestOther = 100'000;  // vocabularies that are not cut by tekken are smaller
  return tokens > kLargestOther && std::strtol(version.c_str(), nullptr, 10) < 5 &&
         std::ranges::find(steps, "Split (tekken)") == steps.end();
}

// The largest id of a kind that an embedding of so many rows has no row for; -1: none.
std::int32_t last_without_row(const Tokenizer& tokenizer, std::int64_t rows, bool special) {
  if (rows == 0) return -1;
  for (auto id = tokenizer.vocab_size() - 1; id >= rows; --id)
    if (const auto at = static_cast<std::int32_t>(id);
        tokenizer.token_bytes(at) && tokenizer.is_special(at) == special)
      return at;
  return -1;
}

}  // namespace

std::string which_lacks_a_row(const Tokenizer& tokenizer, std::int64_t rows) {
  const auto last = last_without_row(tokenizer, rows, /*special=*/false);
  if (last < 0) return {};
  return base::join("the tokenizer has ", tokenizer.vocab_size(), " ids, the model ", rows, " rows, so that ",
                    io::quote(tokenizer.id_to_token(last)), " (id ", last,
                    ") has none; take such tokens out of the tokenizer's files, or give the model rows with "
                    "resize_token_embeddings of transformers");
}

std::string special_without_row(const Tokenizer& tokenizer, std::int64_t rows) {
  const auto last = last_without_row(tokenizer, rows, /*special=*/true);
  if (last < 0) return {};
  return base::join("the special token ", io::quote(tokenizer.id_to_token(last)), " (id ", last,
                    ") has no row among the model's ", rows, ", so text that holds it is refused");
}

TokenizerDescription describe_tokenizer(const fs::path& path, const TokenizerHabits& habits) {
  const Tokenizer tokenizer = Tokenizer::from_file(path);
  const io::TokenizerText file = io::read_tokenizer_text(path, kLargestTokenizerFile);
  const Json json = base::parse_json(file.text, {.max_bytes = kLargestTokenizerFile});
  const Node root(json, file.where);
  TokenizerDescription description{fs::path(file.where).filename().string(), {}, {}};
  for (const char* part : {"normalizer", "pre_tokenizer", "model"})
    if (const auto node = root.find(part)) add_steps(*node, description.steps);
  const Json config = read_beside(path, "config.json");
  const std::string name = class_of(habits, read_beside(path, "tokenizer_config.json"), config);
  const auto steps = steps_of_class(name, file.text, description.steps);
  if (description.file == "tokenizer.json" && !steps.empty())
    description.notes.push_back(base::join(
        "transformers makes this tokenizer as a ", name, ", with the steps ", steps, " in place of those of ",
        description.file, ", which Retort follows: some texts have other ids there."));
  if (const auto lacking = which_lacks_a_row(tokenizer, habits.rows); !lacking.empty())
    description.notes.push_back(lacking + ".");
  if (const auto special = special_without_row(tokenizer, habits.rows); !special.empty())
    description.notes.push_back(special + ".");
  const std::string version = text_of(config, "transformers_version");
  if (habits.cuts_by_tekken && is_cut_otherwise(description.steps, version, tokenizer.vocab_size()))
    description.notes.emplace_back(
        "the tokenizer cuts text by another expression than Mistral's own (tekken); set fix_mistral_regex "
        "to true in tokenizer_config.json to cut as the model was trained.");
  return description;
}

}  // namespace retort::text
