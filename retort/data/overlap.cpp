#include "retort/data/overlap.h"

#include <filesystem>
#include <map>
#include <unordered_set>

#include "retort/base/hash.h"
#include "retort/data/document_reader.h"
#include "retort/data/source_files.h"

namespace retort::data {
namespace {

using Hashes = std::unordered_set<std::uint64_t>;

bool by_hash(const SourceOptions& source) {
  return source.held_out.every == 0 && source.held_out.paths.empty();
}

// Whether the rules alone keep what one holds out away from the training part of the other.
bool excluded(const SourceOptions& learned, const SourceOptions& measured) {
  if (by_hash(learned) && by_hash(measured)) return learned.held_out.fraction >= measured.held_out.fraction;
  return !learned.held_out.paths.empty() && learned.held_out.paths == measured.held_out.paths &&
         learned.separator == measured.separator && learned.field == measured.field;
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

template <typename Visit>
void for_each_text(const SourceOptions& source, Split split, Visit visit) {
  DocumentReader reader(source, split);
  for (Document document; reader.next(document);)
    if (!document.text.empty()) visit(base::hash64(document.text));
}

// Those of the measured sources that may have documents of a used one.
std::vector<SourceOptions> suspects(const SourceOptions& used, Split part,
                                    const std::vector<SourceOptions>& measured) {
  std::vector<SourceOptions> left;
  for (const auto& source : measured)
    if (part == Split::held_out || !excluded(used, source)) left.push_back(source);
  return left;
}

// Of a part of one with each of the others, all in one pass.
void add_overlaps(const SourceOptions& used, Split part, const std::vector<SourceOptions>& measured,
                  std::map<std::string, Hashes>& held_out, std::vector<Overlap>& found) {
  std::vector<Overlap> overlaps;
  std::vector<const Hashes*> hashes;
  for (const auto& source : measured) {
    const auto [place, added] = held_out.try_emplace(source.name);
    if (added)
      for_each_text(source, Split::held_out, [&](std::uint64_t hash) { place->second.insert(hash); });
    hashes.push_back(&place->second);
    overlaps.push_back({used.name, source.name, 0});
  }
  for_each_text(used, part, [&](std::uint64_t hash) {
    for (std::size_t i = 0; i < overlaps.size(); ++i)
      overlaps[i].documents += hashes[i]->contains(hash) ? 1 : 0;
  });
  for (auto& overlap : overlaps)
    if (overlap.documents > 0) found.push_back(std::move(overlap));
}

}  // namespace

Overlaps overlaps(const std::vector<SourceOptions>& used, Split part,
                  const std::vector<SourceOptions>& measured, std::int64_t most_bytes) {
  std::int64_t bytes = 0;
  for (const auto& source : used) bytes += stored_bytes(source);
  Overlaps result;
  std::map<std::string, Hashes> held_out;  // by source, as far as they are needed
  for (const auto& source : used) {
    const auto suspected = suspects(source, part, measured);
    if (suspected.empty()) continue;
    if (bytes > most_bytes)
      result.unread.push_back(source.name);
    else
      add_overlaps(source, part, suspected, held_out, result.found);
  }
  return result;
}

}  // namespace retort::data
