// What a tokenizer and a chat template are asked: their own tokens, and a conversation.
#include "retort/publish/proof_texts.h"

#include <gtest/gtest.h>

#include "retort/base/json.h"
#include "support/outside_data.h"
#include "support/temporary_directory.h"

namespace retort::publish {
namespace {

using base::Json;

constexpr std::size_t kMostBytes = std::size_t{1} << 26;

// The small model's tokenizer with these tokens added behind its own.
text::Tokenizer with_added(const std::vector<Json>& more) {
  Json json = base::parse_json(base::read_file(test::source() / "models/europa-5m/tokenizer.json"),
                               {.max_bytes = kMostBytes});
  for (const Json& flags : more) {
    Json token = {{"id", 4094 + json["added_tokens"].size()},
                  {"content", ""},
                  {"single_word", false},
                  {"lstrip", false},
                  {"rstrip", false},
                  {"normalized", false},
                  {"special", true}};
    for (const auto& [key, value] : flags.items()) token[key] = value;
    json["added_tokens"].push_back(token);
  }
  const test::TemporaryDirectory directory;
  base::write_file_atomically(directory.path() / "tokenizer.json", json.dump());
  return text::Tokenizer::from_file(directory.path() / "tokenizer.json");
}

TEST(ProofTexts, HaveAnAddedTokenBesideLettersSpacesAndBreaks) {
  const auto tokenizer = text::Tokenizer::from_file(test::source() / "models/europa-5m");
  EXPECT_EQ(texts_of_added_tokens(tokenizer, 4096),
            (std::vector<std::string>{"One <|endoftext|> two<|endoftext|>three  <|endoftext|>  four\n"
                                      "<|endoftext|>\n<|endoftext|><|endoftext|>.",
                                      "One <|pad|> two<|pad|>three  <|pad|>  four\n"
                                      "<|pad|>\n<|pad|><|pad|>."}));
}

TEST(ProofTexts, HaveTwoTokensOfEachKindThatHaveARow) {
  const auto tokenizer = with_added({{{"content", "<a>"}},
                                     {{"content", "<b>"}},
                                     {{"content", "<c>"}, {"rstrip", true}},
                                     {{"content", "<d>"}, {"special", false}},
                                     {{"content", "<e>"}, {"rstrip", true}}});
  const auto begins = [&](std::int64_t rows) {
    std::vector<std::string> tokens;
    for (const auto& text : texts_of_added_tokens(tokenizer, rows))
      tokens.push_back(text.substr(4, text.find(" two") - 4));
    return tokens;
  };
  EXPECT_EQ(begins(5000), (std::vector<std::string>{"<|endoftext|>", "<|pad|>", "<c>", "<d>", "<e>"}));
  EXPECT_EQ(begins(4096), (std::vector<std::string>{"<|endoftext|>", "<|pad|>"}));
}

TEST(ProofTexts, HaveAConversationWhereThereIsATemplate) {
  const test::TemporaryDirectory directory;
  EXPECT_EQ(chat_text(directory.path()), "");
  base::write_file_atomically(directory.path() / "chat_template.jinja",
                              "{{ strftime_now('%d %b %Y') }}{% for m in messages %}<{{ m.role }}>"
                              "{{ m.content }}{% endfor %}{% if add_generation_prompt %}<answer>{% endif %}");
  EXPECT_EQ(chat_text(directory.path()),
            "26 Jul 2024<user>How many  legs has a spider?\n<assistant>Eight.<user>And two of them?<answer>");
  base::write_file_atomically(directory.path() / "chat_template.jinja", "{{ raise_exception('no') }}");
  EXPECT_EQ(chat_text(directory.path()), "");
}

}  // namespace
}  // namespace retort::publish
