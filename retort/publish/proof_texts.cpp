#include "retort/publish/proof_texts.h"

#include <array>
#include <ctime>
#include <map>
#include <tuple>

#include "retort/base/error.h"
#include "retort/base/printable.h"
#include "retort/base/utf8.h"
#include "retort/chat/chat_template.h"
#include "retort/chat/template_files.h"

namespace retort::publish {
namespace {

constexpr std::array kTexts{
    "The river rose in the night. By morning the lower road was gone, and the post came by boat: two "
    "letters, a "
    "newspaper three days old, and a parcel of seeds that nobody had ordered.",
    "In 1969 about 600 million people watched; 3.14159 is not 22/7, and 1,000,000 - 999,999 = 1.",
    "def mean(values):\n    total = 0.0\n    for v in values:\n        total += v\n    return total / "
    "len(values)  # "
    "fails on []\n",
    "Żółw i łoś spotkały się w Łodzi; l'été, où êtes-vous? Größe, straße, año, coração, ψυχή, въпрос.",
    "Das Wasser kocht bei hundert Grad, sagt man. Wer es genau wissen will, misst den Luftdruck und rechnet "
    "nach.",
    "水は高きより低きに流れる。我在北京吃苹果。한국어도 씁니다.",
    "I'm sure they'll say it's 'fine' — we've heard that... haven't we?! (Yes/No) [x] {y} <z> @home #1 $5 "
    "100%",
    "👩‍👩‍👧 🇪🇺 ✅ naïve café e\u0301 \u00a0nbsp",
    "  two spaces\t\ttabs\n\n\nthree breaks   and   more    \r\nend ",
};

constexpr std::size_t kTokensOfAKind = 2, kMostTokens = 8;

std::string beside(const std::string& token) {
  return base::join("One ", token, " two", token, "three  ", token, "  four\n", token, "\n", token, token,
                    ".");
}

// Templates may tell the day.
std::tm some_day() {
  std::tm day{};
  day.tm_year = 124;
  day.tm_mon = 6;
  day.tm_mday = 26;
  day.tm_wday = 5;
  day.tm_yday = 207;
  return day;
}

}  // namespace

std::span<const char* const> fixed_texts() {
  return kTexts;
}

std::vector<std::string> texts_of_added_tokens(const text::Tokenizer& tokenizer, std::int64_t rows) {
  std::vector<std::string> texts;
  std::map<std::tuple<bool, bool, bool, bool, bool>, std::size_t> of_kind;
  for (const auto& token : tokenizer.added_tokens()) {
    if (token.id >= rows || texts.size() == kMostTokens || !base::is_utf8(token.content)) continue;
    auto& known = of_kind[{token.special, token.normalized, token.lstrip, token.rstrip, token.single_word}];
    if (known++ < kTokensOfAKind) texts.push_back(beside(token.content));
  }
  return texts;
}

std::string chat_text(const base::Path& model) try {
  const auto sources = chat::find_templates(model);
  if (sources.named.empty()) return "";
  chat::Conversation conversation;
  conversation.add("user", "How many  legs has a spider?\n");
  conversation.add("assistant", "Eight.");
  conversation.add("user", "And two of them?");
  return chat::choose_template(sources, false)
      .render(conversation, {.add_generation_prompt = true, .now = some_day()})
      .text;
} catch (const base::ModelError&) {
  return "";
} catch (const base::DataError&) {
  return "";
}

}  // namespace retort::publish
