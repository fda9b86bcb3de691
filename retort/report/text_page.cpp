#include "retort/report/text_page.h"

#include "retort/report/fields.h"
#include "retort/report/numbers.h"
#include "retort/report/page.h"

namespace retort::report {
namespace {

using base::Json;

constexpr const char* kGenerator = "retort data inspect";

Html lengths_table(const Json& sources) {
  Table table("Lengths of documents: so much of them is at most as long.", {{"Source", "", true},
                                                                            {"In", "", true},
                                                                            {"Least"},
                                                                            {"10 %"},
                                                                            {"Median"},
                                                                            {"90 %"},
                                                                            {"99 %"},
                                                                            {"Most"}});
  for (const Json& source : elements(sources)) {
    const Json& lengths = entry(source, "lengths");
    if (!lengths.is_object()) continue;
    std::vector<Html> cells{text(entry(source, "name")),
                            entry(source, "tokens").is_null() ? "bytes" : "tokens"};
    for (const char* key : {"least", "p10", "median", "p90", "p99", "most"})
      cells.emplace_back(text(entry(lengths, key)));
    table.row(cells);
  }
  return table.empty() ? Html() : table.html();
}

Html counts_table(const Json& sources) {
  Table table("", {{"Source", "", true},
                   {"Documents"},
                   {"Held out"},
                   {"Exact copies"},
                   {"Bad lines"},
                   {"Bytes"},
                   {"Tokens"},
                   {"Bytes a token"}});
  for (const Json& source : elements(sources))
    table.row({text(entry(source, "name")), text(entry(source, "documents")), text(entry(source, "held_out")),
               text(entry(source, "duplicates")), text(entry(source, "bad_lines")),
               text(entry(source, "bytes")), text(entry(source, "tokens")),
               fixed(number(entry(source, "bytes_per_token")), 2)});
  return table.html();
}

Html sequences_table(const Json& sources) {
  Table table("Sequences of training. Documents that are kept whole are left out where they are longer.",
              {{"Source", "", true},
               {"Length"},
               {"Sequences"},
               {"Padding"},
               {"Longer"},
               {"Without an answer"},
               {"Refused"},
               {"Masked tokens"}});
  for (const Json& source : elements(sources)) {
    if (entry(source, "tokens").is_null()) continue;
    table.row({text(entry(source, "name")), text(entry(source, "sequence_length")),
               text(entry(source, "sequences")), percent(number(entry(source, "padding"))),
               text(entry(source, "too_long")), text(entry(source, "unanswered")),
               text(entry(source, "refused")), percent(number(entry(source, "without_target")))});
  }
  return table.empty() ? Html() : table.html();
}

// What is wrong with the first of the bad ones.
Html faults(const Json& sources) {
  Html list;
  for (const Json& source : elements(sources))
    for (const char* key : {"first_bad", "first_refused"})
      if (const auto sentence = text(entry(source, key)); !sentence.empty())
        list += element("p", text(entry(source, "name")) + ": " + sentence);
  return list.empty() ? Html() : element("aside", list);
}

Html sample(const Json& json) {
  const auto all = text(entry(json, "text"));
  Html body;
  std::size_t at = 0;
  for (const Json& answer : elements(entry(json, "answers"))) {
    const auto& ends = elements(answer);
    if (ends.size() != 2 || !ends[0].is_number_unsigned() || !ends[1].is_number_unsigned()) continue;
    const auto begin = ends[0].get<std::size_t>(), end = ends[1].get<std::size_t>();
    if (begin < at || end < begin || end > all.size()) continue;
    body += element("span", {{"class", "prompt"}}, all.substr(at, begin - at));
    body += element("mark", all.substr(begin, end - begin));
    at = end;
  }
  const bool marked = at > 0;
  const Html rest = all.substr(at) + (entry(json, "cut") == Json(true) ? " \u2026" : "");
  body += marked ? element("span", {{"class", "prompt"}}, rest) : rest;
  return element("figure",
                 element("figcaption", text(entry(json, "place"))) + element("p", {{"dir", "auto"}}, body));
}

Html samples(const Json& sources) {
  Html body;
  for (const Json& source : elements(sources)) {
    Html cards;
    for (const Json& one : elements(entry(source, "samples"))) cards += sample(one);
    if (!cards.empty())
      body += element("h3", text(entry(source, "name"))) + element("div", {{"class", "texts"}}, cards);
  }
  if (body.empty()) return {};
  return element("section", {{"id", "samples"}},
                 element("h2", "Samples") +
                     element("p", {{"class", "note"}}, "Of a conversation what is learned is marked.") +
                     body);
}

}  // namespace

std::string text_page(const Json& inspection) {
  const Json& sources = entry(inspection, "sources");
  Html body = element("p", {{"class", "kicker"}}, "Retort data") + element("h1", "What the text holds") +
              faults(sources);
  body += element(
      "section", {{"id", "counts"}},
      element("h2", "Sources") + counts_table(sources) + lengths_table(sources) + sequences_table(sources));
  return page_of("What the text holds", body + samples(sources) + page_footer(), kGenerator);
}

bool is_text_page(std::string_view beginning) {
  return beginning.starts_with("<!DOCTYPE html>") &&
         beginning.find(std::string("name=\"generator\" content=\"") + kGenerator) != beginning.npos;
}

}  // namespace retort::report
