#include "retort/tasks/encode.h"

#include <algorithm>

#include "retort/base/error.h"
#include "retort/chat/code_points.h"

namespace retort::tasks {
namespace {

using base::DataError;
using base::require;
using base::UsageError;
using Ids = std::vector<std::int32_t>;

Ids part(const Ids& ids, std::size_t begin, std::size_t end) {
  return {ids.begin() + static_cast<std::ptrdiff_t>(begin), ids.begin() + static_cast<std::ptrdiff_t>(end)};
}

// The ids of a context and its continuation, cut to what a model reads.
Window window_of(const Ids& context, const Ids& continuation, std::int64_t max_length,
                 const std::string& where) {
  require<DataError>(!context.empty(), where,
                     ": the context is white space, of which no id is left; give it a text.");
  require<DataError>(!continuation.empty(), where, ": the continuation has no ids; give it a text.");
  const auto scored = std::ssize(continuation);
  require<DataError>(scored <= max_length, where, ": the continuation has ", scored,
                     " ids, more than the model's ", max_length, "; leave the document out.");
  Window window{context, scored, 0};
  window.ids.insert(window.ids.end(), continuation.begin(), continuation.end());
  window.cut = std::max<std::int64_t>(0, std::ssize(window.ids) - (max_length + 1));
  window.ids.erase(window.ids.begin(), window.ids.begin() + window.cut);
  return window;
}

}  // namespace

Encoder::Encoder(text::Tokenizer tokenizer, EncodeOptions options)
    : tokenizer_(std::move(tokenizer)), options_(options) {
  require<UsageError>(
      options_.bos || options_.eos,
      "The model's tokenizer has neither a begin nor an end token, which a text without context ",
      "needs before it; name one in tokenizer_config.json.");
  require<UsageError>(options_.max_length > 0, "The model reads ", options_.max_length,
                      " positions, expected at least 1.");
  prefix_ = options_.bos ? *options_.bos : *options_.eos;
  prefix_text_ = tokenizer_.decode(std::vector<std::int32_t>{prefix_}, false);
}

// Special tokens are added unless the text begins with the first of them, as that of a chat template does.
Ids Encoder::encode(const std::string& text) const {
  if (text.starts_with(prefix_text_)) return tokenizer_.encode(text, false);
  return tokenizer_.encode(text, options_.add_special_tokens.value_or(true));
}

Window Encoder::pair(const std::string& context, const std::string& continuation,
                     const std::string& where) const {
  if (context.empty()) {
    const Ids ids = tokenizer_.encode(continuation, false);
    require<DataError>(!ids.empty(), where, ": the continuation has no ids; give it a text.");
    if (ids.front() != prefix_) return window_of({prefix_}, ids, options_.max_length, where);
    return window_of({prefix_}, part(ids, 1, ids.size()), options_.max_length, where);
  }
  const auto begin = context.substr(0, context.size() - chat::trailing_space(context));
  const Ids whole = encode(context + continuation), before = encode(begin);
  return window_of(before, part(whole, std::min(before.size(), whole.size()), whole.size()),
                   options_.max_length, where);
}

std::vector<Window> Encoder::rolling(const std::string& text) const {
  const Ids ids = encode(text);
  const auto longest = static_cast<std::size_t>(options_.max_length);
  std::vector<Window> windows;
  if (ids.empty()) return windows;
  const auto first = std::min(longest, ids.size());
  Window& begin = windows.emplace_back(Window{{prefix_}, static_cast<std::int64_t>(first), 0});
  begin.ids.insert(begin.ids.end(), ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(first));
  for (auto done = first; done < ids.size();) {
    const auto scored = std::min(longest, ids.size() - done);
    done += scored;
    windows.push_back({part(ids, done - longest - 1, done), static_cast<std::int64_t>(scored), 0});
  }
  return windows;
}

Prompt Encoder::prompt(const std::string& context, std::int64_t max_tokens, const std::string& where) const {
  const auto room = options_.max_length - max_tokens;
  require<DataError>(room > 0, where, ": ", max_tokens, " tokens are to be generated, and the model has ",
                     options_.max_length, " positions; set max_gen_toks below that.");
  const bool has_begin = options_.bos && context.starts_with(prefix_text_);
  Ids ids = tokenizer_.encode(context, !has_begin && options_.add_special_tokens.value_or(true));
  require<DataError>(!ids.empty(), where, ": the context has no ids; give it a text.");
  const auto cut = std::max<std::int64_t>(0, std::ssize(ids) - room);
  return {part(ids, static_cast<std::size_t>(cut), ids.size()), cut};
}

std::vector<std::string> Encoder::stops(const std::vector<std::string>& until) const {
  auto stops = until;
  if (!options_.eos) return stops;
  const auto end = tokenizer_.decode(std::vector<std::int32_t>{*options_.eos}, false);
  if (std::find(stops.begin(), stops.end(), end) == stops.end()) stops.push_back(end);
  return stops;
}

std::string before_stops(std::string text, const std::vector<std::string>& stops) {
  for (const auto& stop : stops)
    if (!stop.empty()) text.resize(std::min(text.size(), text.find(stop)));
  return text;
}

}  // namespace retort::tasks
