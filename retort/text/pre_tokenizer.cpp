#include "retort/text/pre_tokenizer.h"

#include <algorithm>

#include "retort/text/limits.h"
#include "retort/text/normalizer.h"
#include "retort/text/unicode.h"

namespace retort::text {
namespace {

Separator separator_of(const Node& node) {
  const std::string& name = node.string();
  if (name == "Removed") return Separator::removed;
  if (name == "Isolated") return Separator::isolated;
  if (name == "MergedWithPrevious") return Separator::merged_with_previous;
  if (name == "MergedWithNext") return Separator::merged_with_next;
  if (name == "Contiguous") return Separator::contiguous;
  node.fail("expected one of Removed, Isolated, MergedWithPrevious, MergedWithNext, Contiguous, found ",
            shown(name), ".");
}

template <typename... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};
template <typename... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;

}  // namespace

PreTokenizer::PreTokenizer(const std::optional<Node>& node) {
  if (node) add(*node);
}

void PreTokenizer::add(const Node& node) {
  const std::string& type = node.type();
  node.require_room(steps_.size());
  if (byte_level_)
    node.fail("found ", shown(type), " after ByteLevel, which Retort supports as the last step only.");
  if (type == "Sequence") {
    for (const Node& step : node.at("pretokenizers").elements(kMaxSteps)) add(step);
  } else if (type == "Split") {
    steps_.push_back(split_step(node));
  } else if (type == "Digits") {
    steps_.push_back(Digits{node.boolean("individual_digits", false)});
  } else if (type == "ByteLevel") {
    steps_.push_back(ByteLevel{node.boolean("add_prefix_space", true), node.boolean("use_regex", true)});
    byte_level_ = true;
  } else if (type == "Metaspace") {
    // Each puts a character before every piece; with cuts between, pieces would double again and again.
    const bool second =
        std::ranges::any_of(steps_, [](const Step& step) { return std::holds_alternative<Metaspace>(step); });
    if (second) node.fail("found a second Metaspace, which Retort supports once.");
    steps_.push_back(metaspace_step(node));
  } else {
    node.fail("expected one of Sequence, Split, Digits, ByteLevel, Metaspace, found ", shown(type),
              ", which Retort does not support; use another tokenizer.");
  }
}

PreTokenizer::Step PreTokenizer::split_step(const Node& node) {
  const Node pattern = node.at("pattern");
  const Separator behaviour = separator_of(node.at("behavior"));
  const bool invert = node.boolean("invert", false);
  const auto regex = pattern.find("Regex");
  if (!regex && invert) node.fail("an inverted Split at a literal is not supported; use another tokenizer.");
  if (!regex) return SplitAtLiteral{literal_pattern(pattern), behaviour};
  const bool isolates = behaviour == Separator::isolated && !invert;
  if (const auto known = recognise(regex->string())) {
    // Where the pattern matches every character, what is between matches is empty.
    const bool all = matches_everything(*known);
    const bool keeps = behaviour == Separator::isolated || (behaviour == Separator::removed && invert);
    if (all && !keeps) node.fail("with this pattern the behavior must be Isolated, or Removed and inverted.");
    if (!all && !isolates) node.fail("with this pattern the behavior must be Isolated.");
    return SplitByPattern{*known};
  }
  if (const auto runs = RunPattern::parse(regex->string())) {
    if (!isolates) node.fail("with this pattern the behavior must be Isolated.");
    return SplitAtRuns{*runs};
  }
  return SplitAtLiteral{literal_pattern(pattern), behaviour};
}

PreTokenizer::Step PreTokenizer::metaspace_step(const Node& node) {
  Metaspace step{node.at("replacement").string(), Prepend::always, node.boolean("split", true)};
  if (step.replacement.empty() || read_character(step.replacement.data()).size != step.replacement.size())
    node.fail("expected one character as replacement, found ", shown(step.replacement), ".");
  if (const auto scheme = node.find("prepend_scheme")) {
    const std::string& name = scheme->string();
    if (name != "first" && name != "never" && name != "always")
      scheme->fail("expected first, never or always, found ", shown(name), ".");
    step.prepend = name == "first" ? Prepend::first : name == "never" ? Prepend::never : Prepend::always;
  }
  // The key of older files.
  if (!node.boolean("add_prefix_space", true)) {
    if (step.prepend != Prepend::never && node.find("prepend_scheme"))
      node.fail("add_prefix_space contradicts prepend_scheme.");
    step.prepend = Prepend::never;
  }
  return step;
}

void PreTokenizer::run(std::size_t step, std::string_view text, bool at_start, const PieceSink& sink) const {
  if (text.empty()) return;
  if (step == steps_.size()) return sink(text);
  if (step + 1 == steps_.size()) return cut(steps_[step], text, at_start, sink);
  bool first = at_start;
  cut(steps_[step], text, at_start, [&](std::string_view piece) {
    run(step + 1, piece, first, sink);
    first = false;
  });
}

void PreTokenizer::cut(const Step& step, std::string_view text, bool at_start, const PieceSink& sink) {
  const Overloaded cases{
      [&](const SplitByPattern& split) { split_by(split.pattern, text, sink); },
      [&](const SplitAtRuns& split) { split_by(split.pattern, text, sink); },
      [&](const SplitAtLiteral& split) { split_at(split.literal, split.behaviour, text, sink); },
      [&](const Digits& digits) { split_digits(text, digits.individual, sink); },
      [&](const ByteLevel& level) {
        std::string spaced;
        if (level.add_prefix_space && text.front() != ' ') text = spaced.append(" ").append(text);
        if (level.use_pattern) return split_by(KnownPattern::gpt2, text, sink);
        sink(text);
      },
      [&](const Metaspace& space) {
        std::string marked = replace_all(text, " ", space.replacement);
        const bool wanted = space.prepend == Prepend::always || (space.prepend == Prepend::first && at_start);
        if (wanted && !marked.starts_with(space.replacement)) marked.insert(0, space.replacement);
        if (space.split) return split_at(space.replacement, Separator::merged_with_next, marked, sink);
        sink(marked);
      }};
  std::visit(cases, step);
}

}  // namespace retort::text
