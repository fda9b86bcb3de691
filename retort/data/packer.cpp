#include "retort/data/packer.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <set>
#include <utility>

#include "retort/base/error.h"
#include "retort/base/hash.h"
#include "retort/base/json.h"
#include "retort/base/random.h"
#include "retort/data/countable_text.h"
#include "retort/data/source_files.h"
#include "retort/data/tokenized.h"
#include "retort/data/whole_documents.h"

namespace retort::data {
namespace {

// Text of each source that is held for shuffling.  It does not depend on the other sources, so that one more
// changes the order of none.
constexpr std::int64_t kShuffleBytes = std::int64_t{16} << 20;
// Sequences that whole documents are packed into together, at least: of fewer more is padding.
constexpr std::int64_t kLeastRow = 64;
// Whole documents of a row are held as tokens.
constexpr std::int64_t kMostRowTokens = std::int64_t{1} << 24;

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
  base::Json json = {{"name", source.name},
                     {"files", files_json(files)},
                     {"separator", source.separator},
                     {"field", source.field},
                     {"weight", source.weight},
                     {"fraction", held_out.fraction},
                     {"every", held_out.every},
                     {"held_out", files_json(held_out_files)},
                     {"skip_bad_lines", source.skip_bad_lines}};
  if (source.chat) json["loss_on"] = base::word(source.loss_on);
  return json;
}

base::Json packing_json(const PackingOptions& packing, const SpecialTokens& special, bool packs_whole) {
  base::Json json = {packing.sequence_length,        begin_of_text(packing.bos, special),
                     packing.eos ? special.eos : -1, packing.attend_across_documents,
                     packing.shuffle_documents,      packing.shuffle_sequences};
  if (packs_whole) json.push_back(base::word(packing.cut));
  return json;
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
    : packing_(packing), encode_(std::move(encode)), special_(special), targets_(targets), seed_(seed) {
  check_packing(packing, special);
  check_sources(sources);
  const ShuffleOptions shuffle{.seed = seed, .documents = packing.shuffle_documents, .bytes = kShuffleBytes};
  for (const SourceOptions& source : sources) packs_whole_ |= packing.keeps_whole(source);
  base::Json identity = {seed, static_cast<int>(split), kShuffleBytes,
                         packing_json(packing, special, packs_whole_)};
  for (const SourceOptions& source : sources) {
    DocumentReader reader(source, split);
    identity.push_back(source_json(source, reader.files()));
    sources_.push_back({source, ShuffledSource(std::move(reader), shuffle), {.name = source.name}});
  }
  fingerprint_ = fingerprint_of(identity);
  before_ = snapshot();
}

Sequence SequencePacker::next() {
  if (packs_whole_) return next_of_row();
  const auto length = static_cast<std::size_t>(packing_.sequence_length);
  while (buffer_.size() < length + 1) pull();
  Sequence sequence = buffer_.front(length, packing_.attend_across_documents, targets_);
  sequence.number = sequences_++;
  buffer_.consume(length);
  return sequence;
}

void SequencePacker::pull() {
  std::optional<DocumentTokens> tokens;
  while (!tokens) {
    before_ = snapshot();
    tokens = next_document(most_owed());
  }
  document_tokens_ = tokens->ids.size();
  buffer_.append(*tokens);
}

Sequence SequencePacker::next_of_row() {
  if (row_.empty()) pack_row();
  base::require<base::DataError>(taken_ < std::ssize(row_), "data cursor: expected more than ", taken_,
                                 " sequences packed together, found ", row_.size(),
                                 "; the sources or the tokenizer have changed since the state was saved.");
  Sequence sequence = std::move(row_[static_cast<std::size_t>(taken_++)]);
  sequence.number = sequences_++;
  if (taken_ == std::ssize(row_)) {
    row_.clear();
    taken_ = 0;
    before_ = snapshot();
    padding_before_ = padding_;
  }
  return sequence;
}

// Fills row_ with the sequences of so many documents.
void SequencePacker::pack_row() {
  const auto length = packing_.sequence_length;
  const auto enough =
      std::min(std::max(packing_.shuffle_sequences, kLeastRow) * length, std::max(kMostRowTokens, length));
  std::vector<DocumentTokens> whole;
  TokenBuffer cut;
  for (std::int64_t tokens = 0; tokens < enough;) {
    Mixed& source = most_owed();
    auto document = next_document(source);
    if (!document) continue;
    tokens += std::ssize(document->ids);
    if (packing_.keeps_whole(source.options)) {
      whole.push_back(std::move(*document));
      continue;
    }
    cut.append(*document);
    for (const auto size = static_cast<std::size_t>(length); cut.size() > size; cut.consume(size))
      row_.push_back(cut.front(size, packing_.attend_across_documents, targets_));
  }
  if (cut.size() > 0) row_.push_back(cut.front(cut.size(), packing_.attend_across_documents, targets_));
  std::ranges::move(packed_whole(std::move(whole), length, packing_.attend_across_documents, targets_),
                    std::back_inserter(row_));
  for (auto& sequence : row_) padding_ += pad(sequence, length, std::max(special_.eos, 0));
  base::Random random(seed_, base::stream_of(base::join("packed/", sequences_ - taken_)));
  base::shuffle(row_, random);
}

SequencePacker::Mixed& SequencePacker::most_owed() {
  Mixed* best = &sources_.front();
  for (Mixed& source : sources_) {
    // tokens / weight compared without dividing: whole numbers times weights, the same on every machine.
    const double here = static_cast<double>(source.statistics.tokens) * best->options.weight;
    const double there = static_cast<double>(best->statistics.tokens) * source.options.weight;
    if (here < there) best = &source;
  }
  return *best;
}

// Counts it; nothing where it is passed over.
std::optional<DocumentTokens> SequencePacker::next_document(Mixed& source) const {
  Document document;
  source.documents.next(document);
  auto tokens = tokenized(document, source.options, packing_, encode_, special_);
  const bool barren = !tokens || tokens->num_targets(targets_, packing_.attend_across_documents) == 0;
  const bool too_long =
      tokens && packing_.keeps_whole(source.options) && std::ssize(tokens->ids) > packing_.sequence_length;
  base::require<base::DataError>(
      !too_long || packing_.too_long == TooLong::drop, "source '", source.options.name, "', ",
      place_of(document), ": has ", tokens ? tokens->ids.size() : 0, " tokens, a sequence has ",
      packing_.sequence_length,
      "; raise packing.sequence_length, or let packing.too_long: drop leave it out.");
  const bool unanswered = tokens && source.options.chat && barren;
  source.statistics.refused += tokens ? 0 : 1;
  source.statistics.too_long += too_long ? 1 : 0;
  source.statistics.unanswered += unanswered && !too_long ? 1 : 0;
  require_progress(source, barren || too_long);
  if (!tokens || too_long || unanswered) return {};
  count(source, *tokens);
  return tokens;
}

void SequencePacker::require_progress(Mixed& source, bool barren) const {
  SourceStatistics& statistics = source.statistics;
  const std::int64_t epoch = source.documents.place().epoch;
  source.barren_epochs = barren ? source.barren_epochs + (epoch - statistics.epoch) : 0;
  statistics.epoch = epoch;
  if (source.barren_epochs >= 2)
    throw base::DataError(nothing_to_predict(
        source.options, packing_, {statistics.too_long, statistics.unanswered, statistics.refused}));
}

void SequencePacker::count(Mixed& source, const DocumentTokens& tokens) const {
  SourceStatistics& statistics = source.statistics;
  ++statistics.documents;
  statistics.bytes += tokens.bytes;
  statistics.tokens += std::ssize(tokens.ids);
  statistics.targets += tokens.num_targets(targets_, packing_.attend_across_documents);
  statistics.skipped_lines = std::max(statistics.skipped_lines, source.documents.reader().skipped_lines());
}

std::vector<PackerCursor::Source> SequencePacker::snapshot() const {
  std::vector<PackerCursor::Source> sources;
  sources.reserve(sources_.size());
  for (const Mixed& source : sources_) sources.push_back({source.documents.place(), source.statistics});
  return sources;
}

PackerCursor SequencePacker::cursor() const {
  if (packs_whole_)
    return {.sequences = sequences_, .taken = taken_, .padding = padding_before_, .sources = before_};
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
  row_.clear();
  taken_ = cursor.taken;
  padding_ = padding_before_ = cursor.padding;
  if (sequences_ == 0 || packs_whole_) return;
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
