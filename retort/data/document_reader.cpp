#include "retort/data/document_reader.h"

#include <algorithm>
#include <utility>

#include "retort/base/error.h"
#include "retort/base/hash.h"
#include "retort/data/source_files.h"

namespace retort::data {
namespace {

// Not the seed of a run: the held-out part must be the same in every run.
constexpr std::uint64_t kHeldOutSeed = 0x68656C642D6F7574;  // "held-out"

std::uint64_t text_hash(std::string_view text) {
  return base::hash64(text, kHeldOutSeed);
}

void check_rule(const SourceOptions& source) {
  const HeldOut& rule = source.held_out;
  base::require<base::UsageError>(rule.fraction >= 0 && rule.fraction <= 0.5, "source '", source.name,
                                  "': expected a held-out fraction from 0 to 0.5, found ", rule.fraction,
                                  ".");
  base::require<base::UsageError>(rule.every >= 0, "source '", source.name,
                                  "': expected every n-th document held out with n > 0, found ", rule.every,
                                  ".");
  base::require<base::UsageError>(rule.every == 0 || rule.paths.empty(), "source '", source.name,
                                  "': expected one rule for the held-out part, found every n-th document and "
                                  "files; keep one of them.");
}

// Only hashes are kept, 8 bytes for each held-out document.
std::vector<std::uint64_t> hashes_of_held_out_files(const SourceOptions& source) {
  DocumentReader reader(source, Split::held_out);
  std::vector<std::uint64_t> hashes;
  for (Document document; reader.next(document);) hashes.push_back(text_hash(document.text));
  std::sort(hashes.begin(), hashes.end());
  return hashes;
}

}  // namespace

double held_out_place(std::string_view text) {
  return static_cast<double>(text_hash(text) >> 11) * 0x1.0p-53;
}

bool is_held_out(const HeldOut& rule, const Document& document) {
  if (rule.every > 0) return document.number % rule.every == rule.every - 1;
  return held_out_place(document.text) < rule.fraction;
}

DocumentReader::DocumentReader(SourceOptions source, Split split)
    : source_(std::move(source)), split_(split) {
  check_rule(source_);
  const bool held_out_files = !source_.held_out.paths.empty();
  const bool read_held_out_files = held_out_files && split_ == Split::held_out;
  files_ = expand_paths(source_.name, read_held_out_files ? source_.held_out.paths : source_.paths);
  if (held_out_files && split_ == Split::training) held_out_texts_ = hashes_of_held_out_files(source_);
}

bool DocumentReader::next(Document& document) {
  for (;;) {
    if (stop_.stop_requested()) throw Stopped{};
    if (!records_ && !open_next()) return false;
    const Record record = records_->next(document.text);
    if (record == Record::end) {
      records_.reset();
      ++position_.file;
      position_.record = 0;
      continue;
    }
    ++position_.record;
    if (record == Record::blank) continue;
    document.number = position_.number++;
    if (record == Record::bad) {
      ++position_.skipped_lines;
      continue;
    }
    document.file = files_[static_cast<std::size_t>(position_.file)];
    document.record = position_.record;
    if (belongs(document)) return true;
  }
}

bool DocumentReader::open_next() {
  const auto file = static_cast<std::size_t>(position_.file);
  if (file >= files_.size()) return false;
  records_ = open_records(source_, files_[file]);
  return true;
}

bool DocumentReader::belongs(const Document& document) const {
  const HeldOut& rule = source_.held_out;
  if (split_ == Split::all || (split_ == Split::held_out && !rule.paths.empty())) return true;
  const bool held_out =
      rule.paths.empty()
          ? is_held_out(rule, document)
          : std::binary_search(held_out_texts_.begin(), held_out_texts_.end(), text_hash(document.text));
  return held_out == (split_ == Split::held_out);
}

void DocumentReader::seek(const Position& position) {
  if (position == position_) return;
  position_ = position;
  records_.reset();
  if (position.record == 0 || !open_next()) return;
  for (std::int64_t record = 0; record < position.record; ++record) {
    if (stop_.stop_requested()) throw Stopped{};
    base::require<base::DataError>(records_->skip(), "source '", source_.name, "': expected at least ",
                                   position.record, " records in ",
                                   files_[static_cast<std::size_t>(position.file)].string(), ", found ",
                                   record, "; the file has changed since the position was saved.");
  }
}

}  // namespace retort::data
