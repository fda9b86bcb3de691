#include "retort/text/normalizer.h"

#include "retort/text/limits.h"
#include "retort/text/unicode.h"

namespace retort::text {

const std::string& literal_pattern(const Node& pattern) {
  if (const auto regex = pattern.find("Regex"))
    regex->fail("the regular expression ", shown(regex->string()),
                " is not one that Retort knows, and a file's expression is never run; use a tokenizer with a "
                "known one.");
  const Node literal = pattern.at("String");
  if (literal.string().empty()) literal.fail("expected a text to look for, found an empty one.");
  if (literal.string().size() > kMaxLiteralBytes)
    literal.fail("expected a text of at most ", kMaxLiteralBytes, " bytes to look for, found one of ",
                 literal.string().size(), ".");
  return literal.string();
}

std::string replace_all(std::string_view text, std::string_view pattern, std::string_view content,
                        std::size_t most_bytes) {
  std::string out;
  out.reserve(text.size() + text.size() / 4);
  std::size_t start = 0;
  for (std::size_t at = text.find(pattern); at != text.npos; at = text.find(pattern, start)) {
    out.append(text.substr(start, at - start)).append(content);
    start = at + pattern.size();
    if (out.size() > most_bytes) return out;
  }
  return out.append(text.substr(start));
}

Normalizer::Normalizer(const std::optional<Node>& node) {
  if (!node) return;
  who_ = node->file() + ": normalizer";
  add(*node);
}

void Normalizer::add(const Node& node) {
  const std::string& type = node.type();
  node.require_room(steps_.size());
  if (type == "Sequence") {
    for (const Node& step : node.at("normalizers").elements(kMaxSteps)) add(step);
  } else if (type == "Prepend") {
    steps_.push_back({Kind::prepend, "", node.at("prepend").string()});
  } else if (type == "Replace") {
    steps_.push_back({Kind::replace, literal_pattern(node.at("pattern")), node.at("content").string()});
  } else if (type == "NFC") {
    steps_.push_back({Kind::nfc, "", ""});
  } else {
    node.fail("expected one of Sequence, Prepend, Replace, NFC, found ", shown(type),
              ", which Retort does not support; use another tokenizer.");
  }
}

std::string Normalizer::apply(std::string_view text) const {
  const GrowthLimit limit(text.size());
  std::string out(text);
  for (const Step& step : steps_) {
    switch (step.kind) {
      case Kind::prepend:
        if (!out.empty()) out.insert(0, step.content);
        break;
      case Kind::replace:
        out = replace_all(out, step.pattern, step.content, limit.most_bytes());
        break;
      case Kind::nfc:
        out = to_nfc(out);
        break;
    }
    limit.check(out.size(), who_);
  }
  return out;
}

}  // namespace retort::text
