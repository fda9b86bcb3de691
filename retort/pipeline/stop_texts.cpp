#include "retort/pipeline/stop_texts.h"

#include <utility>

namespace retort::pipeline {

void StopTexts::end_texts_of(eval::TextsListener& listener) {
  if (stops_.empty()) return;
  listener.ends = [this](std::size_t prompt, std::int32_t id) { return ends(prompt, id); };
  listener.done = [this, done = std::move(listener.done)](std::size_t prompt, const eval::Generation& made) {
    answers_.erase(prompt);
    if (done) done(prompt, made);
  };
}

bool StopTexts::ends(std::size_t prompt, std::int32_t id) {
  auto& [decoded, search] =
      answers_.try_emplace(prompt, text::DecodedText(tokenizer_), text::TextSearch(stops_)).first->second;
  decoded.add(id);
  return search.found(decoded.text(), decoded.settled_bytes());
}

}  // namespace retort::pipeline
