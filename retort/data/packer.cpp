#include "retort/data/packer.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>
#include <utility>

#include "retort/base/error.h"
#include "retort/base/hash.h"
#include "retort/base/json.h"
#include "retort/data/source_files.h"

namespace retort::data {
namespace {

// Text held for shuffling, all sources together; a source alone gets at least kLeastShuffleBytes.
constexpr std::int64_t kShuffleBytes = std::int64_t{64} << 20;
constexpr std::int64_t kLeastShuffleBytes = std::int64_t{1} << 20;

void check_sources(const std::vector<SourceOptions>& sources) {
  base::require<base::UsageError>(!sources.empty(), "data: expected at least one source, found none.");
  std::set<std::string> names;
  for (const SourceOptions& source : sources) {
    base::require<base::UsageError>(names.insert(source.name).second,
                                    "data: expected sources of different names, found '", source.name,
                                    "' twice.");
    base::require<base::UsageError>(std::isfinite(source.weight) && source.weight > 0, "source '",
                                    source.name, "': expected a weight above 0, found ", source.weight,
                                    "; leave the source out instead.");
  }
}

// Names without folders: a corpus may move, but it must not change.
base::Json files_json(const std::vector<base::Path>& files) {
  base::Json json = base::Json::array();
  for (const base::Path& file : files) {
    std::error_code missing;
    const auto bytes = std::filesystem::file_size(file, missing);
    json.push_back({file.filename().string(), missing ? 0 : bytes});
  }
  return json;
}

base::Json source_json(const SourceOptions& source, const std::vector<base::Path>& files) {
  const HeldOut& held_out = source.held_out;
  const auto held_out_files =
      held_out.paths.empty() ? std::vector<base::Path>{} : expand_paths(source.name, held_out.paths);
  return {{"name", source.name},
          {"files", files_json(files)},
          {"separator", source.separator},
          {"field", source.field},
          {"weight", source.weight},
          {"fraction", held_out.fraction},
          {"every", held_out.every},
          {"held_out", files_json(held_out_files)},
          {"skip_bad_lines", source.skip_bad_lines}};
}

base::Json packing_json(const PackingOptions& packing, const SpecialTokens& special) {
  return {packing.sequence_length,        begin_of_text(packing.bos, special),
          packing.eos ? special.eos : -1, packing.attend_across_documents,
          packing.shuffle_documents,      packing.shuffle_sequences};
}

std::string fingerprint_of(const base::Json& json) {
  // Names of files need not be UTF-8.
  const std::string text = json.dump(-1, ' ', false, base::Json::error_handler_t::replace);
  base::Hasher hasher;
  hasher.update(text.data(), text.size());
  return hasher.hex();
}

}  // namespace

SequencePacker::SequencePacker(const std::vector<SourceOptions>& sources, const PackingOptions& packing,
                               Encode encode, const SpecialTokens& special, std::uint64_t seed, Split split,
                               Targets targets)
    : packing_(packing), encode_(std::move(encode)), special_(special), targets_(targets) {
  check_packing(packing, special);
  check_sources(sources);
  const auto count = static_cast<std::int64_t>(sources.size());
  const ShuffleOptions shuffle{.seed = seed,
                               .documents = packing.shuffle_documents,
                               .bytes = std::max(kShuffleBytes / count, kLeastShuffleBytes)};
  base::Json identity = {seed, static_cast<int>(split), packing_json(packing, special)};
  for (const SourceOptions& source : sources) {
    DocumentReader reader(source, split);
    identity.push_back(source_json(source, reader.files()));
    sources_.push_back({ShuffledSource(std::move(reader), shuffle), source.weight, {.name = source.name}});
  }
  fingerprint_ = fingerprint_of(identity);
  before_ = snapshot();
}

Sequence SequencePacker::next() {
  const auto length = static_cast<std::size_t>(packing_.sequence_length);
  while (buffer_.size() < length + 1) pull();
  Sequence sequence = buffer_.front(length, packing_.attend_across_documents, targets_);
  sequence.number = sequences_++;
  buffer_.consume(length);
  return sequence;
}

void SequencePacker::pull() {
  before_ = snapshot();
  Mixed& source = most_owed();
  Document document;
  source.documents.next(document);
  const auto tokens = encode_document(document.text, packing_, encode_, special_);
  count(source, document, tokens);
  document_tokens_ = tokens.ids.size();
  buffer_.append(tokens);
}

SequencePacker::Mixed& SequencePacker::most_owed() {
  Mixed* best = &sources_.front();
  for (Mixed& source : sources_) {
    // tokens / weight compared without dividing: whole numbers times weights, the same on every machine.
    const double here = static_cast<double>(source.statistics.tokens) * best->weight;
    const double there = static_cast<double>(best->statistics.tokens) * source.weight;
    if (here < there) best = &source;
  }
  return *best;
}

void SequencePacker::count(Mixed& source, const Document& document, const DocumentTokens& tokens) const {
  SourceStatistics& statistics = source.statistics;
  const std::int64_t epoch = source.documents.place().epoch;
  const bool barren = tokens.num_targets(targets_, packing_.attend_across_documents) == 0;
  source.barren_epochs = barren ? source.barren_epochs + (epoch - statistics.epoch) : 0;
  base::require<base::DataError>(source.barren_epochs < 2, "source '", statistics.name, kNothingToPredict);
  ++statistics.documents;
  statistics.bytes += static_cast<std::int64_t>(document.text.size());
  statistics.tokens += static_cast<std::int64_t>(tokens.ids.size());
  statistics.epoch = epoch;
  statistics.skipped_lines = std::max(statistics.skipped_lines, source.documents.reader().skipped_lines());
}

std::vector<PackerCursor::Source> SequencePacker::snapshot() const {
  std::vector<PackerCursor::Source> sources;
  sources.reserve(sources_.size());
  for (const Mixed& source : sources_) sources.push_back({source.documents.place(), source.statistics});
  return sources;
}

PackerCursor SequencePacker::cursor() const {
  // All tokens of earlier documents are consumed by now: what is left belongs to the last one, because a
  // document is pulled only when fewer tokens are there than a sequence takes.
  const std::size_t left = sequences_ > 0 ? buffer_.size() : document_tokens_;
  return {.sequences = sequences_,
          .offset_tokens = static_cast<std::int64_t>(document_tokens_ - left),
          .sources = before_};
}

void SequencePacker::seek(const PackerCursor& cursor) {
  bool same = cursor.sources.size() == sources_.size();
  for (std::size_t i = 0; same && i < sources_.size(); ++i)
    same = cursor.sources[i].statistics.name == sources_[i].statistics.name;
  base::require<base::DataError>(same,
                                 "data cursor: expected the sources of this stream, found others; the saved "
                                 "state belongs to another recipe.");
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    sources_[i].documents.seek(cursor.sources[i].place);
    sources_[i].statistics = cursor.sources[i].statistics;
    sources_[i].barren_epochs = 0;
  }
  buffer_ = {};
  document_tokens_ = 0;
  sequences_ = cursor.sequences;
  before_ = cursor.sources;
  if (sequences_ == 0) return;
  pull();
  const auto offset = static_cast<std::size_t>(cursor.offset_tokens);
  base::require<base::DataError>(offset < buffer_.size(), "data cursor: expected a document of more than ",
                                 offset, " tokens, found one of ", buffer_.size(),
                                 "; the sources or the tokenizer have changed since the state was saved.");
  buffer_.consume(offset);
}

std::vector<SourceStatistics> SequencePacker::statistics() const {
  std::vector<SourceStatistics> statistics;
  for (const Mixed& source : sources_) statistics.push_back(source.statistics);
  return statistics;
}

void SequencePacker::stop_with(const std::stop_token& token) {
  for (Mixed& source : sources_) source.documents.stop_with(token);
}

}  // namespace retort::data
