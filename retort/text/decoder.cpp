#include "retort/text/decoder.h"

#include <charconv>
#include <limits>

#include "retort/text/byte_level.h"
#include "retort/text/limits.h"
#include "retort/text/normalizer.h"
#include "retort/text/unicode.h"

namespace retort::text {
int fallback_byte(const std::string& token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return -1;
  const char* digits = token.data() + 3;
  if (*digits == '+') ++digits;  // Rust's number parser allows a sign
  int value = -1;
  const auto [end, error] = std::from_chars(digits, token.data() + 5, value, 16);
  return error == std::errc() && end == token.data() + 5 ? value : -1;
}

namespace {

using Tokens = std::vector<std::string>;

std::string joined(const Tokens& tokens, std::string_view between = "") {
  std::string out;
  for (std::size_t i = 0; i < tokens.size(); ++i) out.append(i == 0 ? "" : between).append(tokens[i]);
  return out;
}

std::size_t bytes_of(const Tokens& tokens) {
  std::size_t bytes = 0;
  for (const std::string& token : tokens) bytes += token.size();
  return bytes;
}

// A token may hold characters outside the alphabet (an added token): it stands for itself.
std::string decode_byte_level(const Tokens& tokens) {
  std::string bytes, storage;
  for (const std::string& token : tokens) bytes += token_bytes(token).value_or(token);
  return std::string(to_valid_utf8(bytes, storage));
}

// A run of byte tokens is one text, or, if it is not valid UTF-8, one U+FFFD per byte.
Tokens decode_byte_fallback(Tokens tokens) {
  Tokens out;
  std::string run;
  const auto flush = [&] {
    if (run.empty()) return;
    if (valid_utf8_prefix(run) == run.size())
      out.push_back(run);
    else
      out.insert(out.end(), run.size(), "\xEF\xBF\xBD");
    run.clear();
  };
  for (std::string& token : tokens) {
    const int byte = fallback_byte(token);
    if (byte >= 0) {
      run.push_back(static_cast<char>(byte));
      continue;
    }
    flush();
    out.push_back(std::move(token));
  }
  flush();
  return out;
}

std::string strip(std::string_view token, std::string_view character, std::int64_t start, std::int64_t stop) {
  for (; start > 0 && token.starts_with(character); --start) token.remove_prefix(character.size());
  for (; stop > 0 && token.ends_with(character); --stop) token.remove_suffix(character.size());
  return std::string(token);
}

const std::string& one_character(const Node& node) {
  const std::string& text = node.string();
  if (text.empty() || read_character(text.data()).size != text.size())
    node.fail("expected one character, found ", shown(text), ".");
  return text;
}

}  // namespace

Decoder::Decoder(const std::optional<Node>& node) : present_(node.has_value()) {
  if (!node) return;
  who_ = node->file() + ": decoder";
  add(*node);
  can_be_cut_ = cut_ends_steps();
}

// Marks the steps that see one token made of all.  Returns whether a text may be cut between tokens: such
// steps change its beginning at most, and those before it look at one token, or at a run of byte tokens.
bool Decoder::cut_ends_steps() {
  bool joined = false, has_fallback = false, can = true;
  for (auto& step : steps_) {
    step.of_whole = joined;
    switch (step.kind) {
      case Kind::byte_level:
        can = can && &step == &steps_.front();
        joined = true;
        break;
      case Kind::fuse:
        joined = true;
        break;
      case Kind::byte_fallback:
        can = can && !joined && !has_fallback;
        has_fallback = true;
        break;
      case Kind::strip:
        can = can && !(joined && step.stop > 0);
        break;
      case Kind::replace:
      case Kind::metaspace:
        can = can && !joined;
        break;
    }
  }
  return can;
}

void Decoder::add(const Node& node) {
  const std::string& type = node.type();
  node.require_room(steps_.size());
  if (type == "Sequence") {
    for (const Node& step : node.at("decoders").elements(kMaxSteps)) add(step);
  } else if (type == "ByteLevel") {
    steps_.push_back({Kind::byte_level, "", ""});
  } else if (type == "ByteFallback") {
    steps_.push_back({Kind::byte_fallback, "", ""});
  } else if (type == "Fuse") {
    steps_.push_back({Kind::fuse, "", ""});
  } else if (type == "Replace") {
    steps_.push_back({Kind::replace, literal_pattern(node.at("pattern")), node.at("content").string()});
  } else if (type == "Strip") {
    steps_.push_back(strip_step(node));
  } else if (type == "Metaspace") {
    steps_.push_back(metaspace_step(node));
  } else {
    node.fail("expected one of Sequence, ByteLevel, ByteFallback, Fuse, Replace, Strip, Metaspace, found ",
              shown(type), ", which Retort does not support; use another tokenizer.");
  }
}

Decoder::Step Decoder::strip_step(const Node& node) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  return {Kind::strip, one_character(node.at("content")), "", node.at("start").number(kMost),
          node.at("stop").number(kMost)};
}

Decoder::Step Decoder::metaspace_step(const Node& node) {
  Step step{Kind::metaspace, one_character(node.at("replacement")), ""};
  const auto scheme = node.find("prepend_scheme");
  step.drop_first = node.boolean("add_prefix_space", true) && (!scheme || scheme->string() != "never");
  return step;
}

// Leaves its work unfinished where all tokens together come to more than `most_bytes`.
void Decoder::apply(const Step& step, Part part, Tokens& tokens, std::size_t most_bytes) {
  switch (step.kind) {
    case Kind::byte_level:
      tokens = {decode_byte_level(tokens)};
      break;
    case Kind::byte_fallback:
      tokens = decode_byte_fallback(std::move(tokens));
      break;
    case Kind::fuse:
      tokens = {joined(tokens)};
      break;
    case Kind::replace:
      for (auto& token : tokens) {
        token = replace_all(token, step.pattern, step.content, most_bytes);
        if (token.size() > most_bytes) return;
        most_bytes -= token.size();
      }
      break;
    case Kind::strip:
      if (part == Part::rest && step.of_whole) break;  // its beginning was before
      for (auto& token : tokens) token = strip(token, step.pattern, step.start, step.stop);
      break;
    case Kind::metaspace:
      for (std::size_t i = 0; i < tokens.size(); ++i)
        tokens[i] =
            replace_all(tokens[i], step.pattern, i == 0 && step.drop_first && part == Part::whole ? "" : " ");
      break;
  }
}

std::string Decoder::decode_part(Part part, Tokens tokens) const {
  if (!present_) {
    if (part == Part::rest) tokens.insert(tokens.begin(), "");
    return joined(tokens, " ");
  }
  const GrowthLimit limit(bytes_of(tokens));
  for (const Step& step : steps_) {
    apply(step, part, tokens, limit.most_bytes());
    limit.check(bytes_of(tokens), who_);
  }
  return joined(tokens);
}

std::string Decoder::decode(Tokens tokens) const {
  return decode_part(Part::whole, std::move(tokens));
}

std::string Decoder::decode_rest(Tokens tokens) const {
  return decode_part(Part::rest, std::move(tokens));
}

bool Decoder::settles_text_before(const std::string& token) const {
  if (!can_be_cut_) return false;
  Tokens tokens{token};
  const GrowthLimit limit(token.size());
  for (const Step& step : steps_) {
    if (step.kind == Kind::byte_level) {
      const auto bytes = token_bytes(token).value_or(token);
      return !bytes.empty() && (static_cast<unsigned char>(bytes.front()) & 0xC0U) != 0x80U;
    }
    if (step.kind == Kind::byte_fallback) return fallback_byte(tokens.front()) < 0;
    if (step.kind == Kind::fuse) break;
    apply(step, Part::rest, tokens, limit.most_bytes());
  }
  return true;
}

}  // namespace retort::text
