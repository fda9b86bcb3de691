#include "retort/data/shuffled_source.h"

#include <utility>

#include "retort/base/error.h"
#include "retort/base/random.h"

namespace retort::data {
namespace {

// The source's name and place are part of the stream, so that no two windows share their draws.
void shuffle(std::vector<Document>& documents, std::uint64_t seed, const std::string& source,
             const ShuffledSource::Place& place) {
  const std::string stream = base::join("shuffle/", source, "/", place.epoch, "/", place.window);
  base::Random random(seed, base::stream_of(stream));
  base::shuffle(documents, random);
}

}  // namespace

ShuffledSource::ShuffledSource(DocumentReader reader, const ShuffleOptions& options)
    : reader_(std::move(reader)), options_(options) {}

void ShuffledSource::next(Document& document) {
  if (!loaded_) load();
  while (place_.taken >= static_cast<std::int64_t>(window_.size())) advance();
  document = std::move(window_[static_cast<std::size_t>(place_.taken++)]);
}

void ShuffledSource::seek(const Place& place) {
  place_ = place;
  loaded_ = false;
  window_.clear();
}

void ShuffledSource::load() {
  reader_.seek(place_.window_start);
  window_.clear();
  std::int64_t bytes = 0;
  Document document;
  while (static_cast<std::int64_t>(window_.size()) < options_.documents && bytes < options_.bytes &&
         reader_.next(document)) {
    if (document.text.empty()) continue;
    document.text.shrink_to_fit();  // the parser's buffer may be twice as large
    bytes += static_cast<std::int64_t>(document.text.size());
    window_.push_back(std::move(document));
  }
  shuffle(window_, options_.seed, reader_.source().name, place_);
  for (std::int64_t i = 0; i < place_.taken && i < static_cast<std::int64_t>(window_.size()); ++i)
    window_[static_cast<std::size_t>(i)] = {};
  loaded_ = true;
}

void ShuffledSource::advance() {
  if (!window_.empty()) {
    ++place_.window;
    place_.window_start = reader_.position();
  } else {
    if (place_.window == 0) refuse_empty();
    ++place_.epoch;
    place_.window = 0;
    place_.window_start = {};
  }
  place_.taken = 0;
  load();
}

void ShuffledSource::refuse_empty() const {
  const std::string& name = reader_.source().name;
  const std::int64_t passed = reader_.documents_passed() - reader_.skipped_lines();
  base::require<base::DataError>(
      passed == 0, "source '", name, "': expected documents with text, found ", passed,
      " documents of which the held-out part or emptiness leaves none; hold out less or "
      "add text.");
  throw base::DataError(base::join("source '", name, "': expected documents, found none in ",
                                   reader_.files().size(), " file(s), ", reader_.skipped_lines(),
                                   " bad line(s) skipped; check the path and the format."));
}

}  // namespace retort::data
