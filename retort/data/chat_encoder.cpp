#include "retort/data/chat_encoder.h"

#include <optional>
#include <utility>

#include "retort/base/error.h"
#include "retort/chat/answers.h"
#include "retort/chat/template_files.h"

namespace retort::data {

struct ChatEncoder::Templates {
  base::Path model;
  text::Tokenizer tokenizer;
  std::optional<chat::ChatTemplate> plain, with_tools;

  const chat::ChatTemplate& of(bool tools) {
    auto& chosen = tools ? with_tools : plain;
    if (chosen) return *chosen;
    const auto sources = chat::find_templates(model);
    base::require<base::ModelError>(
        !sources.named.empty(), sources.where,
        ": expected a chat template to write the conversations of the text, found none; put a "
        "chat_template.jinja beside its tokenizer, for example that of the model's instruct version.");
    return chosen.emplace(chat::choose_template(sources, tools));
  }
};

std::tm day_of_templates() {
  std::tm day{};
  day.tm_year = 2024 - 1900;
  day.tm_mon = 6;
  day.tm_mday = 26;
  day.tm_wday = 5;
  day.tm_yday = 207;
  return day;
}

ChatEncoder::ChatEncoder(base::Path model, text::Tokenizer tokenizer)
    : templates_(std::make_shared<Templates>(Templates{
          .model = std::move(model), .tokenizer = std::move(tokenizer), .plain = {}, .with_tools = {}})) {}

ChatTokens ChatEncoder::operator()(const chat::Conversation& conversation) const {
  const auto& chosen = templates_->of(!conversation.tools.is_null());
  auto encoded =
      chat::encode_answers(chosen, templates_->tokenizer, conversation, {.now = day_of_templates()});
  ChatTokens tokens{.ids = std::move(encoded.ids), .is_answer = std::move(encoded.is_answer)};
  tokens.bytes = std::ssize(encoded.text);
  for (const auto& [begin, end] : encoded.answers) tokens.answer_bytes += std::int64_t(end - begin);
  tokens.text = std::move(encoded.text);
  tokens.answers = std::move(encoded.answers);
  return tokens;
}

}  // namespace retort::data
