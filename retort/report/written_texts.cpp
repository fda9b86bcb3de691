// Text that models wrote for the run to learn from.
#include "retort/report/fields.h"
#include "retort/report/sections.h"

namespace retort::report {
namespace {

using base::Json;

constexpr std::size_t kMostBytes = 1200;  // of an example

std::string dropped(const Json& about) {
  std::string all;
  for (const auto& [what, rows] : field(about, keys::kDropped).items())
    all += (all.empty() ? "" : ", ") + text(rows) + " " + what;
  return all.empty() ? "none" : all;
}

Html table_of(const Run& run) {
  Table table("Texts that models wrote. Those that were dropped are in none of the other figures.",
              {{"Source", "", true},
               {"Texts", ""},
               {"Tokens", "by the writer's tokenizer"},
               {"Written", "texts"},
               {"Dropped", "", true}});
  for (const auto& text_of : run.texts)
    table.row({text_of.source, count(number(text_of.about, keys::kTexts)),
               count(number(text_of.about, keys::kTokens)), count(number(text_of.about, keys::kRows)),
               dropped(text_of.about)});
  return table.html();
}

// Its beginning, at a whole character.
std::string beginning(std::string whole) {
  if (whole.size() <= kMostBytes) return whole;
  auto end = kMostBytes;
  while (end > 0 && (static_cast<unsigned char>(whole[end]) & 0xC0U) == 0x80U) --end;
  return whole.substr(0, end) + " \u2026";
}

Html example(const Json& line) {
  Html parts;
  for (const Json& message : elements(field(line, keys::kMessages))) {
    const auto said = beginning(text(entry(message, "content")));
    const bool is_answer = text(entry(message, "role")) == "assistant";
    parts += element("p", {{"dir", "auto"}},
                     is_answer ? Html(said) : element("span", {{"class", "prompt"}}, said));
  }
  if (parts.empty()) parts = element("p", {{"dir", "auto"}}, beginning(text(line, keys::kText)));
  return element("figure", parts);
}

}  // namespace

Html written_texts(const Run& run) {
  if (run.texts.empty()) return {};
  Html body = table_of(run);
  for (const auto& text_of : run.texts) {
    Html examples;
    for (const Json& line : text_of.examples) examples += example(line);
    if (examples.empty()) continue;
    body += element("h3", text_of.source) + element("div", {{"class", "texts"}}, examples);
  }
  return body;
}

}  // namespace retort::report
