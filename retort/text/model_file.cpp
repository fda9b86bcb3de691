#include "retort/text/model_file.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

namespace retort::text {
namespace {

using base::join;

void refuse_text(const Node& model, const char* key) {
  const auto member = model.find(key);
  if (member && !member->string().empty())
    member->fail("found ", shown(member->string()), ", expected none; this option is not supported.");
}

void refuse_dropout(const Node& model) {
  const auto dropout = model.find("dropout");
  if (!dropout) return;
  if (!dropout->value().is_number() || dropout->value().get<double>() != 0.0)
    dropout->fail("expected null or 0: ids must not depend on chance.");
}

// "a b" of older files.
std::pair<std::string_view, std::string_view> two_words(const Node& merges, std::size_t index,
                                                        std::string_view line) {
  const std::size_t space = line.find(' ');
  if (space == line.npos || line.find(' ', space + 1) != line.npos)
    merges.fail("entry ", index, ": expected two tokens with one space between, found ", shown(line), ".");
  return {line.substr(0, space), line.substr(space + 1)};
}

std::pair<std::string_view, std::string_view> two_tokens(const Node& merges, std::size_t index,
                                                         const Node::Value& entry) {
  if (entry.is_string()) return two_words(merges, index, entry.get_ref<const std::string&>());
  if (!entry.is_array() || entry.size() != 2 || !entry[0].is_string() || !entry[1].is_string())
    merges.fail("entry ", index, ": expected a pair of tokens, found ", shown(entry.dump()), ".");
  return {entry[0].get_ref<const std::string&>(), entry[1].get_ref<const std::string&>()};
}

MergeTable read_merges(const Node& merges, const Vocabulary& vocabulary, const VocabularyLimits& limits) {
  if (!merges.value().is_array()) merges.fail("expected a list of merges.");
  if (merges.value().size() > limits.merges)
    merges.fail("found ", merges.value().size(), " merges, expected at most ", limits.merges, ".");
  MergeTable table(merges.value().size());
  std::size_t index = 0;
  std::uint32_t rank = 0;
  const auto id_of = [&](std::string_view token) {
    const auto found = vocabulary.find(token);
    if (found == vocabulary.end())
      merges.fail("entry ", index, ": the vocabulary has no token ", shown(token), ".");
    return found->second;
  };
  for (const auto& entry : merges.value()) {
    // Files made from merges.txt keep its first line.
    const bool header = entry.is_string() && entry.get_ref<const std::string&>().starts_with("#version");
    if (!header) {
      const auto [left, right] = two_tokens(merges, index, entry);
      const std::int32_t left_id = id_of(left), right_id = id_of(right);
      table.set(left_id, right_id, {rank++, id_of(std::string(left).append(right))});
    }
    ++index;
  }
  return table;
}

// A table has a row for each id, so a file of some bytes with a large one would take hundreds of megabytes.
std::int64_t largest_id(std::size_t tokens, const VocabularyLimits& limits) {
  constexpr std::int64_t kIdsOfToken = 16, kMore = 65'536;
  return std::min(limits.tokens - 1, static_cast<std::int64_t>(tokens) * kIdsOfToken + kMore);
}

AddedToken read_added_token(const Node& node, const VocabularyLimits& limits) {
  AddedToken token;
  token.id = static_cast<std::int32_t>(node.at("id").number(limits.tokens - 1));
  token.content = node.at("content").string();
  if (token.content.empty() || token.content.size() > limits.added_token_bytes)
    node.fail("expected a content of 1 to ", limits.added_token_bytes, " bytes, found ", token.content.size(),
              ".");
  token.single_word = node.boolean("single_word", false);
  token.lstrip = node.boolean("lstrip", false);
  token.rstrip = node.boolean("rstrip", false);
  token.special = node.boolean("special", false);
  token.normalized = node.boolean("normalized", !token.special);
  return token;
}

}  // namespace

Vocabulary read_vocabulary(const Node& model, const VocabularyLimits& limits) {
  if (const auto type = model.find("type"); type && type->string() != "BPE")
    type->fail("expected BPE, found ", shown(type->string()),
               ", which Retort does not support; use another tokenizer.");
  const Node entries = model.at("vocab");
  if (!entries.value().is_object()) entries.fail("expected an object of tokens and ids.");
  if (entries.value().empty() || entries.value().size() > static_cast<std::size_t>(limits.tokens))
    entries.fail("found ", entries.value().size(), " tokens, expected 1 to ", limits.tokens, ".");
  const std::int64_t largest = largest_id(entries.value().size(), limits);
  Vocabulary vocabulary;
  vocabulary.reserve(entries.value().size());
  std::unordered_map<std::int32_t, const std::string*> owners;
  owners.reserve(entries.value().size());
  for (auto entry = entries.value().begin(); entry != entries.value().end(); ++entry) {
    const Node::Value& id = entry.value();
    if (!id.is_number_unsigned() || id.get<std::uint64_t>() > static_cast<std::uint64_t>(largest))
      entries.fail("the token ", shown(entry.key()), " has the id ", shown(id.dump()),
                   ", expected a whole number up to ", largest, ".");
    if (entry.key().size() > limits.token_bytes)
      entries.fail("the token ", shown(entry.key()), " has more than ", limits.token_bytes, " bytes.");
    const auto value = id.get<std::int32_t>();
    const auto [owner, fresh] = owners.emplace(value, &entry.key());
    if (!fresh)
      entries.fail("the tokens ", shown(*owner->second), " and ", shown(entry.key()), " have the same id ",
                   value, ".");
    vocabulary.emplace(entry.key(), value);
  }
  return vocabulary;
}

Bpe read_bpe(const Node& model, const Vocabulary& vocabulary, bool byte_level,
             const VocabularyLimits& limits) {
  refuse_text(model, "continuing_subword_prefix");
  refuse_text(model, "end_of_word_suffix");
  refuse_dropout(model);
  BpeOptions options;
  options.byte_level = byte_level;
  options.byte_fallback = model.boolean("byte_fallback", false);
  options.fuse_unk = model.boolean("fuse_unk", false);
  options.ignore_merges = model.boolean("ignore_merges", false);
  if (const auto unk = model.find("unk_token")) {
    const auto found = vocabulary.find(unk->string());
    if (found == vocabulary.end()) unk->fail("the vocabulary has no token ", shown(unk->string()), ".");
    options.unk = found->second;
  }
  return Bpe(vocabulary, read_merges(model.at("merges"), vocabulary, limits), options);
}

std::deque<AddedToken> read_added_tokens(const Node& root, const Vocabulary& vocabulary,
                                         const VocabularyLimits& limits) {
  std::deque<AddedToken> tokens;
  const auto list = root.find("added_tokens");
  if (!list) return tokens;
  std::unordered_set<std::string> contents;
  // HF tokenizers does not read the id of a token that is not in the vocabulary: it counts on from there.
  auto next = static_cast<std::int32_t>(vocabulary.size());
  for (const Node& node : list->elements(limits.added_tokens)) {
    AddedToken token = read_added_token(node, limits);
    if (!contents.insert(token.content).second)
      node.fail("the token ", shown(token.content), " stands twice.");
    const auto found = vocabulary.find(token.content);
    const std::int32_t expected = found != vocabulary.end() ? found->second : next++;
    if (token.id != expected)
      node.fail("the token ", shown(token.content), " has the id ", token.id,
                ", but by the vocabulary it has ", expected, ".");
    tokens.push_back(std::move(token));
  }
  return tokens;
}

}  // namespace retort::text
