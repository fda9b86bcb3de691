#include "retort/text/post_processor.h"

#include <limits>

#include "retort/text/limits.h"

namespace retort::text {
namespace {

using Ids = std::vector<std::int32_t>;

Ids ids_of(const Node& special, const std::function<bool(std::int64_t)>& known) {
  Ids out;
  for (const Node& id : special.at("ids").elements(kMaxAround)) {
    const std::int64_t value = id.number(std::numeric_limits<std::int32_t>::max());
    if (!known(value)) id.fail("the id ", value, " names no token of the vocabulary.");
    out.push_back(static_cast<std::int32_t>(value));
  }
  return out;
}

}  // namespace

PostProcessor::PostProcessor(const std::optional<Node>& node,
                             const std::function<bool(std::int64_t)>& known) {
  if (node) add(*node, known);
}

void PostProcessor::add(const Node& node, const std::function<bool(std::int64_t)>& known) {
  const std::string& type = node.type();
  if (type == "Sequence") {
    for (const Node& step : node.at("processors").elements(kMaxSteps)) add(step, known);
  } else if (type == "TemplateProcessing") {
    add_template(node, known);
  } else if (type != "ByteLevel") {  // ByteLevel moves offsets only
    node.fail("expected one of Sequence, TemplateProcessing, ByteLevel, found ", shown(type),
              ", which Retort does not support; use another tokenizer.");
  }
}

void PostProcessor::require_room(const Node& node, std::size_t more) const {
  if (prefix.size() + suffix.size() + more > kMaxAround)
    node.fail("puts more than ", kMaxAround, " tokens around a text; use another tokenizer.");
}

void PostProcessor::add_template(const Node& node, const std::function<bool(std::int64_t)>& known) {
  Ids before, after;
  int sequences = 0;
  for (const Node& piece : node.at("single").elements(kMaxAround)) {
    if (const auto sequence = piece.find("Sequence")) {
      if (sequence->at("id").string() != "A")
        sequence->fail("expected the sequence \"A\" in a single template.");
      ++sequences;
      continue;
    }
    const std::string& name = piece.at("SpecialToken").at("id").string();
    const Ids ids = ids_of(node.at("special_tokens").at(name.c_str()), known);
    require_room(piece, before.size() + after.size() + ids.size());
    Ids& side = sequences == 0 ? before : after;
    side.insert(side.end(), ids.begin(), ids.end());
  }
  if (sequences != 1)
    node.fail("expected the sequence once in the single template, found it ", sequences, " times.");
  prefix.insert(prefix.begin(), before.begin(), before.end());
  suffix.insert(suffix.end(), after.begin(), after.end());
}

}  // namespace retort::text
