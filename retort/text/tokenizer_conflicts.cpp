#include "retort/text/tokenizer_conflicts.h"

#include <charconv>
#include <cstdint>
#include <optional>

#include "retort/base/error.h"
#include "retort/base/files.h"
#include "retort/base/json.h"
#include "retort/io/files_inside.h"
#include "retort/io/quote.h"
#include "retort/io/sentencepiece.h"
#include "retort/text/tokenizer.h"

namespace retort::text {
namespace {

using base::Json;
namespace fs = std::filesystem;

constexpr const char* kRead = "tokenizer.json";

struct NamedToken {
  std::string content;
  std::int64_t id = 0;
};

// Nothing where there is no such file, or none that can be read: whoever needs it says so.
std::optional<std::string> text_of(const fs::path& directory, const char* name) try {
  if (!io::entry_exists(directory / name)) return std::nullopt;
  return io::read_small_file(io::resolve_inside(directory, name), kLargestTokenizerFile);
} catch (const base::Error&) {
  return std::nullopt;
}

// Null where there is no such file, or none that is JSON.
Json json_of(const fs::path& directory, const char* name) try {
  const auto text = text_of(directory, name);
  return text ? base::parse_json(*text, {.max_bytes = kLargestTokenizerFile}) : Json();
} catch (const base::JsonFault&) {
  return {};
}

std::vector<NamedToken> pieces(const fs::path& directory) {
  std::vector<NamedToken> tokens;
  const auto file = text_of(directory, "tokenizer.model");
  if (!file) return tokens;
  try {
    for (auto& piece : io::pieces_of_sentencepiece(*file, "tokenizer.model"))
      tokens.push_back({std::move(piece), std::ssize(tokens)});
  } catch (const base::ModelError&) {
    tokens.clear();  // of another format, which nobody reads here
  }
  return tokens;
}

// {"<token>": id}
std::vector<NamedToken> added(const Json& json) {
  std::vector<NamedToken> tokens;
  if (!json.is_object()) return tokens;
  for (const auto& [content, id] : json.items())
    if (id.is_number_integer()) tokens.push_back({content, id.get<std::int64_t>()});
  return tokens;
}

// {"added_tokens_decoder": {"id": {"content": "<token>"}}}
std::vector<NamedToken> decoded(const Json& config) {
  std::vector<NamedToken> tokens;
  if (!config.is_object() || !config.contains("added_tokens_decoder")) return tokens;
  const Json& listed = config.at("added_tokens_decoder");
  if (!listed.is_object()) return tokens;
  for (const auto& [id, token] : listed.items()) {
    std::int64_t number = -1;
    const auto [end, error] = std::from_chars(id.data(), id.data() + id.size(), number);
    if (error == std::errc() && end == id.data() + id.size() && token.is_object() &&
        token.contains("content") && token.at("content").is_string())
      tokens.push_back({token.at("content").get<std::string>(), number});
  }
  return tokens;
}

// Empty where all tokens of a file have the same ids in the one that is read.
std::string conflict(const fs::path& directory, const char* file, const std::vector<NamedToken>& tokens,
                     const Tokenizer& read) {
  std::string first;
  std::int64_t others = -1;
  for (const auto& [content, id] : tokens) {
    const auto here = read.token_to_id(content);
    if (here && *here == id) continue;
    if (others++ < 0)
      first = base::join(io::quote(content), " is ", id, " there and ", here ? base::join(*here) : "nothing",
                         " here");
  }
  if (first.empty()) return {};
  return base::join(directory.string(), ": ", io::quote(file), " has other ids than ", io::quote(kRead),
                    ", which is read: ", first,
                    others > 0 ? base::join(", and ", others, " more differ") : "",
                    "; other programs may read either.");
}

std::string conflict_of_templates(const fs::path& directory, const Json& config) {
  const auto file = text_of(directory, "chat_template.jinja");
  const bool both = file && config.is_object() && config.contains("chat_template");
  if (!both || config.at("chat_template") == *file) return {};
  return base::join(
      directory.string(),
      ": the chat templates of \"chat_template.jinja\" and of \"tokenizer_config.json\" differ; "
      "transformers takes the former.");
}

}  // namespace

std::vector<std::string> tokenizer_conflicts(const fs::path& directory) try {
  std::vector<std::string> found;
  std::error_code error;
  if (!fs::is_directory(directory, error) || !io::entry_exists(directory / kRead)) return found;
  const Json config = json_of(directory, "tokenizer_config.json");
  const auto of_pieces = pieces(directory), of_added = added(json_of(directory, "added_tokens.json")),
             of_config = decoded(config);
  const auto add = [&](std::string sentence) {
    if (!sentence.empty()) found.push_back(std::move(sentence));
  };
  if (!of_pieces.empty() || !of_added.empty() || !of_config.empty()) {
    const Tokenizer read = Tokenizer::from_file(directory);
    add(conflict(directory, "tokenizer.model", of_pieces, read));
    add(conflict(directory, "added_tokens.json", of_added, read));
    add(conflict(directory, "tokenizer_config.json", of_config, read));
  }
  add(conflict_of_templates(directory, config));
  return found;
} catch (const base::Error&) {
  return {};  // no tokenizer that can be read
}

}  // namespace retort::text
