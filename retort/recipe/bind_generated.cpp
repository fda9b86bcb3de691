#include "retort/base/error.h"
#include "retort/recipe/bind_options.h"

namespace retort::recipe {
namespace {

using data::GeneratedText;

void bind_drawing(Binder& b, GeneratedText& text) {
  if (b.fills() && text.chat && !b.given("temperature")) text.temperature = GeneratedText::kOfAnswers;
  b.number(
      "temperature", text.temperature,
      {.doc = "of answers and documents", .at_least = 0, .at_most = 1000, .unset = "0.7 of chats, else 1"});
  b.number("top_p", text.top_p,
           {.doc = "only the most likely tokens that together have this share", .above = 0, .at_most = 1});
  b.count("top_k", text.top_k, {.doc = "only so many tokens, the most likely ones; 0: all", .at_least = 0});
  b.number(
      "min_p", text.min_p,
      {.doc = "only tokens so many times as likely as the most likely one", .at_least = 0, .at_most = 1});
  b.number("question_temperature", text.question_temperature,
           {.doc = "of questions that the model asks", .at_least = 0, .at_most = 1000});
  b.number("question_top_p", text.question_top_p, {.doc = "likewise", .above = 0, .at_most = 1});
  b.seed("seed", text.seed, {.doc = "of the text", .unset = "that of the recipe"});
}

void check_way(Binder& b, const GeneratedText& text) {
  if (text.model.empty()) b.mistake("model", "missing (earlier stage or directory of the model that writes)");
  if (text.tokens == 0 && (!text.chat || text.asks_itself()))
    b.mistake("tokens", "expected a number of tokens to keep above 0, such as 1M");
  if (!text.chat && text.questions != GeneratedText::kSelf)
    b.mistake("questions", "are asked in a conversation; give chat: true, or leave them out");
  if (text.chat && !text.starts.empty())
    b.mistake("starts", "are of documents, not of chats; leave out one of the two");
  if (text.asks_itself() && text.question_temperature == 0)
    b.mistake("question_temperature", "at 0 every question would be the same; take one above 0");
  if (!text.chat && text.starts.empty() && text.temperature == 0)
    b.mistake("temperature", "at 0 every document would be the same; take one above 0, or give starts");
}

}  // namespace

void bind_generated(Binder& b, GeneratedText& text, bool is_given) {
  b.text("model", text.model,
         {.doc = "earlier stage or directory of the model that writes the text",
          .may_be_empty = true,
          .unset = "none; required here"});
  b.count(
      "tokens", text.tokens,
      {.doc = "that are kept, by the model's tokenizer, rounded up to whole texts; 0: an answer to each of "
              "a file of questions",
       .at_least = 0});
  b.flag("chat", text.chat,
         {.doc = "conversations in the form of the model's chat template, else documents"});
  b.text("questions", text.questions,
         {.doc = "of chats: self, the model asks; or a file, a question a line: text, {\"prompt\": TEXT} or "
                 "{\"messages\": [...]}"});
  b.text("starts", text.starts,
         {.doc = "of documents: a file of beginnings, one a line: text or {\"text\": TEXT}",
          .may_be_empty = true,
          .unset = "the begin-of-text token alone"});
  b.count("start_tokens", text.start_tokens,
          {.doc = "of each beginning at most", .at_least = 1, .at_most = 1 << 20});
  b.count("max_new_tokens", text.max_new_tokens,
          {.doc = "of an answer or a document; an answer without an end is dropped",
           .at_least = 1,
           .at_most = 1 << 20});
  b.count("max_question_tokens", text.max_question_tokens,
          {.doc = "of a question that the model asks", .at_least = 1, .at_most = 1 << 20});
  bind_drawing(b, text);
  b.count("batch", text.batch,
          {.doc = "texts that are made at once; decides no text", .at_least = 1, .at_most = 1 << 16});
  if (is_given) check_way(b, text);
}

}  // namespace retort::recipe
