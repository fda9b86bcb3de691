#include "retort/text/decoded_text.h"

#include <algorithm>

namespace retort::text {

void DecodedText::add(std::int32_t id) {
  if (!text_.empty() && tokenizer_.settles_text_before(id)) {
    settled_bytes_ = text_.size();
    open_.clear();
  }
  open_.push_back(id);
  text_.resize(settled_bytes_);
  text_ += settled_bytes_ > 0 ? tokenizer_.decode_rest(open_) : tokenizer_.decode(open_);
}

bool TextSearch::found(std::string_view text, std::size_t settled_bytes) {
  const bool is_there = std::ranges::any_of(wanted_, [&](const std::string& one) {
    const auto reaching_back = std::min(searched_bytes_, one.empty() ? 0 : one.size() - 1);
    return text.find(one, searched_bytes_ - reaching_back) != text.npos;
  });
  searched_bytes_ = settled_bytes;
  return is_there;
}

}  // namespace retort::text
