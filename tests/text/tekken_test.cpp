// tekken.json beside the tokenizer.json that has the same tokens.
#include <gtest/gtest.h>

#include <algorithm>

#include "retort/base/error.h"
#include "retort/base/files.h"
#include "retort/base/json.h"
#include "retort/io/model_directory.h"
#include "retort/text/tokenizer.h"
#include "support/message_of.h"
#include "support/outside_data.h"
#include "support/temporary_directory.h"

namespace retort::text {
namespace {

using base::Json;

std::string base64(const std::string& bytes) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t bits = 0;
    for (std::size_t k = 0; k < 3; ++k)
      bits = bits << 8 | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0U);
    for (std::size_t k = 0; k < 4; ++k)
      text += i + k > bytes.size() ? '=' : kDigits[bits >> (18 - 6 * k) & 63];
  }
  return text;
}

// The bytes first, then the tokens of `tokenizer` in the order in which they were learned.
Json tekken_of(const std::filesystem::path& file) {
  const auto tokenizer = Tokenizer::from_file(file);
  const Json root = base::parse_json(base::read_file(file), {.max_bytes = std::size_t{1} << 24});
  std::vector<std::int32_t> ids;
  for (const auto& [token, id] : root.at("model").at("vocab").items()) ids.push_back(id);
  std::sort(ids.begin(), ids.end());
  std::vector<std::string> tokens;
  for (int byte = 0; byte < 256; ++byte) tokens.emplace_back(1, static_cast<char>(byte));
  for (const auto id : ids) {
    const auto bytes = tokenizer.token_bytes(id).value_or("");
    const bool special = std::ranges::any_of(
        root.at("added_tokens"), [&](const Json& added) { return added.at("id").get<std::int32_t>() == id; });
    if (bytes.size() > 1 && !special) tokens.push_back(bytes);
  }
  Json json = {{"config",
                {{"pattern", root.at("pre_tokenizer").at("pretokenizers").at(0).at("pattern").at("Regex")},
                 {"default_vocab_size", tokens.size() + 4},
                 {"default_num_special_tokens", 4},
                 {"version", "v7"}}},
               {"vocab", Json::array()},
               {"special_tokens", Json::array()}};
  for (const auto& token : tokens)
    json["vocab"].push_back(
        {{"rank", json["vocab"].size()}, {"token_bytes", base64(token)}, {"token_str", nullptr}});
  for (const char* token : {"<unk>", "<s>", "</s>"})
    json["special_tokens"].push_back({{"rank", json["special_tokens"].size()}, {"token_str", token}});
  return json;
}

class Tekken : public ::testing::Test {
 protected:
  Tokenizer read(const Json& json) const {
    base::write_file_atomically(directory_ / "tekken.json", json.dump());
    return Tokenizer::from_file(directory_.path());
  }
  std::string refusal(const Json& json) const {
    return test::message_of<base::ModelError>([&] { read(json); });
  }
  const std::filesystem::path made_ = test::oracles("text") / "made" / "tekken" / "tokenizer.json";
  test::TemporaryDirectory directory_;
};

TEST_F(Tekken, CutsTextsAsTokenizerJsonDoes) {
  const auto plain = Tokenizer::from_file(made_), tekken = read(tekken_of(made_));
  const auto pieces = [](const Tokenizer& tokenizer, const std::string& text) {
    std::vector<std::string> list;
    for (const auto id : tokenizer.encode(text, false)) list.push_back(tokenizer.token_bytes(id).value());
    return list;
  };
  for (const char* text : {"Hello world", "CamelCASE www.example.org/path 12345", "größer, schöner\n\n  x",
                           "日本語 テキスト", " ", "", "He'd said I'M sure", "👩‍👩‍👧 é\t\t"})
    EXPECT_EQ(pieces(tekken, text), pieces(plain, text)) << text;
  EXPECT_EQ(tekken.special_prefix(), std::vector<std::int32_t>{1});
  EXPECT_EQ(tekken.id_to_token(3), "<SPECIAL_3>");
  EXPECT_EQ(tekken.encode("</s>a", false).front(), 2);
}

TEST_F(Tekken, TravelsWithTheTokenizerJsonThatIsMadeOfIt) {
  (void)read(tekken_of(made_));
  std::vector<std::string> names;
  for (const auto& file : io::accompanying_files(directory_.path())) names.push_back(file.name.string());
  EXPECT_EQ(names, (std::vector<std::string>{"tokenizer.json", "tekken.json"}));
}

TEST_F(Tekken, RefusesRanksWithHolesAndWhatIsNoFileOfItsKind) {
  const Json sound = tekken_of(made_);
  auto holes = sound;
  holes["vocab"][300]["rank"] = 301;
  EXPECT_SAYS(refusal(holes), "ranks of vocab have a hole before 300");
  auto twice = sound;
  twice["vocab"][300]["token_bytes"] = sound["vocab"][299]["token_bytes"];
  EXPECT_SAYS(refusal(twice), "has the bytes of another token");
  auto damaged = sound;
  damaged["vocab"][300]["token_bytes"] = "A?==";
  EXPECT_SAYS(refusal(damaged), "are not base64");
  auto short_of = sound;
  short_of["config"]["default_vocab_size"] = 4000000;
  EXPECT_SAYS(refusal(short_of), "expected 3999996");
  auto special = sound;
  special["special_tokens"][1]["rank"] = 2;
  EXPECT_SAYS(refusal(special), "special_tokens have a hole");
  EXPECT_SAYS(refusal(Json::array()), "lacks config");
  base::write_file_atomically(directory_ / "tekken.json", "{");
  EXPECT_SAYS(test::message_of<base::ModelError>([&] { Tokenizer::from_file(directory_.path()); }),
              "not sound JSON");
}

// The bytes first, then `tokens`.
Json tekken_with(const std::vector<std::string>& tokens) {
  Json vocab = Json::array();
  const auto add = [&](const std::string& token) {
    vocab.push_back({{"rank", vocab.size()}, {"token_bytes", base64(token)}});
  };
  for (int byte = 0; byte < 256; ++byte) add(std::string(1, static_cast<char>(byte)));
  for (const auto& token : tokens) add(token);
  return {{"config",
           {{"pattern", "x"}, {"default_vocab_size", vocab.size() + 20}, {"default_num_special_tokens", 20}}},
          {"vocab", vocab}};
}

TEST_F(Tekken, RefusesTokensThatAreMadeOfEachOtherInTooManyWays) {
  std::vector<std::string> runs;
  for (std::size_t length = 2; length < 900; ++length) runs.emplace_back(length, 'a');
  EXPECT_SAYS(refusal(tekken_with(runs)), "can be made of each other in more than 134217728 bytes of ways");
  EXPECT_SAYS(refusal(tekken_with({std::string(100'000, 'a')})), "in more than 8589934592 bytes of ways");
}

TEST_F(Tekken, RefusesFarMoreSpecialTokensThanItNames) {
  auto json = tekken_with({});
  json["config"]["default_num_special_tokens"] = 4'000'000;
  json["config"]["default_vocab_size"] = 4'000'256;
  EXPECT_SAYS(refusal(json), "has 4000000 special tokens, expected at most 65536");
}

}  // namespace
}  // namespace retort::text
