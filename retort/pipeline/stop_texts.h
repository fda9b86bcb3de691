#pragma once
// Texts that end an answer which holds one of them.

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "retort/eval/generate_texts.h"
#include "retort/text/decoded_text.h"

namespace retort::pipeline {

class StopTexts {
 public:
  /// `stops` may be empty and outlive it.
  StopTexts(text::Tokenizer tokenizer, const std::vector<std::string>& stops)
      : tokenizer_(std::move(tokenizer)), stops_(stops) {}

  /// Has the texts of `listener` end where one of the stops is found; it outlives the listener.
  void end_texts_of(eval::TextsListener& listener);

 private:
  struct Answer {
    text::DecodedText decoded;
    text::TextSearch search;
  };

  bool ends(std::size_t prompt, std::int32_t id);

  text::Tokenizer tokenizer_;
  const std::vector<std::string>& stops_;
  std::map<std::size_t, Answer> answers_;  ///< that are being made
};

}  // namespace retort::pipeline
