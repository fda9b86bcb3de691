#include "retort/data/overlap.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "retort/data/conversations.h"
#include "retort/data/document_reader.h"
#include "retort/data/file_form.h"
#include "retort/data/held_out_texts.h"
#include "retort/data/source_files.h"
#include "retort/data/text_runs.h"

namespace retort::data {
namespace {

constexpr std::size_t kMostRuns = std::size_t{1} << 21;  // of all measured sources, about 50 bytes each

bool by_hash(const SourceOptions& source) {
  return source.held_out.every == 0 && source.held_out.paths.empty();
}

FileForm form_of_first(const SourceOptions& source) {
  return form_of(source, expand_paths(source.name, source.paths).front());
}

// Equal rules say the same of equal documents only, and what is cut otherwise makes other documents.
bool same_cut(const SourceOptions& a, const SourceOptions& b) {
  return a.chat == b.chat && a.separator == b.separator && a.field == b.field &&
         form_of_first(a) == form_of_first(b);
}

// Whether the rules alone keep what one holds out away from the training part of the other.
bool excluded(const SourceOptions& learned, const SourceOptions& measured) {
  const bool hashes =
      by_hash(learned) && by_hash(measured) && learned.held_out.fraction >= measured.held_out.fraction;
  const bool files = !learned.held_out.paths.empty() && learned.held_out.paths == measured.held_out.paths;
  return (hashes || files) && same_cut(learned, measured);
}

std::int64_t stored_bytes(const SourceOptions& source) {
  std::int64_t bytes = 0;
  for (const auto& file : expand_paths(source.name, source.paths)) {
    std::error_code ignored;  // reading says what is wrong with a file
    const auto size = std::filesystem::file_size(file, ignored);
    if (!ignored) bytes += static_cast<std::int64_t>(size);
  }
  return bytes;
}

// What is looked for and looked in: of a conversation what is said, whatever a template writes around it.
std::string searched(const SourceOptions& source, Document& document) {
  return source.chat ? spoken_text(document.text) : std::move(document.text);
}

HeldOutTexts held_out_texts(const SourceOptions& source, std::size_t most_runs) {
  HeldOutTexts texts(most_runs);
  DocumentReader reader(source, Split::held_out);
  for (Document document; reader.next(document);) texts.add(searched(source, document));
  return texts;
}

// Those of the measured sources that may have documents of a used one.
std::vector<SourceOptions> suspects(const SourceOptions& used, Split part,
                                    const std::vector<SourceOptions>& measured) {
  std::vector<SourceOptions> left;
  for (const auto& source : measured)
    if (part == Split::held_out || !excluded(used, source)) left.push_back(source);
  return left;
}

// What is looked for, and what it is called.
using Wanted = std::vector<std::pair<std::string, HeldOutTexts*>>;

// Of a part of one source with each of the others, all in one pass.
void add_overlaps(const SourceOptions& used, Split part, const Wanted& wanted, std::vector<Overlap>& found) {
  std::uint64_t limit = 0;
  for (const auto& [name, texts] : wanted) {
    texts->restart();
    limit = std::max(limit, texts->limit());
  }
  DocumentReader reader(used, part);
  for (Document document; reader.next(document);) {
    const auto text = searched(used, document);
    const auto runs = text_runs(text, limit);
    for (const auto& [name, texts] : wanted) texts->look_in(text, runs);
  }
  for (const auto& [name, texts] : wanted)
    if (const auto documents = texts->found(); documents > 0) found.push_back({used.name, name, documents});
}

std::int64_t stored_bytes(const std::vector<SourceOptions>& sources) {
  std::int64_t bytes = 0;
  for (const auto& source : sources) bytes += stored_bytes(source);
  return bytes;
}

}  // namespace

Overlaps overlaps(const std::vector<SourceOptions>& used, Split part,
                  const std::vector<SourceOptions>& measured, std::int64_t most_bytes) {
  const bool too_long = stored_bytes(used) > most_bytes;
  Overlaps result;
  std::map<std::string, HeldOutTexts> held_out;  // by source, as far as they are needed
  const auto most_runs = kMostRuns / std::max<std::size_t>(measured.size(), 1);
  for (const auto& source : used) {
    const auto suspected = suspects(source, part, measured);
    if (suspected.empty()) continue;
    if (too_long) {
      result.unread.push_back(source.name);
      continue;
    }
    Wanted wanted;
    for (const auto& other : suspected) {
      auto place = held_out.find(other.name);
      if (place == held_out.end())
        place = held_out.emplace(other.name, held_out_texts(other, most_runs)).first;
      wanted.emplace_back(other.name, &place->second);
    }
    add_overlaps(source, part, wanted, result.found);
  }
  return result;
}

Overlaps overlaps(const std::vector<SourceOptions>& used, const std::vector<MeasuredTexts>& measured,
                  std::int64_t most_bytes) {
  Overlaps result;
  if (measured.empty()) return result;
  if (stored_bytes(used) > most_bytes) {
    for (const auto& source : used) result.unread.push_back(source.name);
    return result;
  }
  std::vector<HeldOutTexts> all(measured.size(), HeldOutTexts(kMostRuns / measured.size()));
  Wanted wanted;
  for (std::size_t i = 0; i < measured.size(); ++i) {
    for (const auto& text : measured[i].texts) all[i].add(text);
    wanted.emplace_back(measured[i].name, &all[i]);
  }
  for (const auto& source : used) add_overlaps(source, Split::training, wanted, result.found);
  return result;
}

}  // namespace retort::data
