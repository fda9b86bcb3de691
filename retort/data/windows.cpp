#include "retort/data/windows.h"

#include <algorithm>
#include <string>
#include <utility>

#include "retort/base/error.h"
#include "retort/base/hash.h"
#include "retort/data/held_out_part.h"
#include "retort/data/packer.h"

namespace retort::data {

WindowReader::WindowReader(const SourceOptions& source, Split split, const WindowOptions& options,
                           Encode encode, const SpecialTokens& special)
    : reader_(source, split),
      split_(split),
      options_(options),
      encode_(std::move(encode)),
      special_(special) {
  packing_.sequence_length = options.context;
  packing_.bos = options.bos;
  packing_.eos = options.eos;
  check_packing(packing_, special);
  base::require<base::UsageError>(
      options.context >= 2, "windows: expected a context of at least 2 tokens, found ", options.context, ".");
  base::require<base::UsageError>(options.overlap_tokens == 0 || options.overlap_tokens == 1,
                                  "windows: expected an overlap of 0 or 1 tokens, found ",
                                  options.overlap_tokens, ".");
}

bool WindowReader::next(Sequence& window) {
  const auto context = static_cast<std::size_t>(options_.context);
  while (buffer_.size() < context && pull()) {
  }
  const std::size_t length = std::min(buffer_.size(), context);
  if (length < 2) return false;
  window = buffer_.front(length, options_.attend_across_documents, Targets::measured);
  window.targets.back() = kNoTarget;  // it is scored by the next window, if there is one
  window.number = windows_++;
  // Nothing but the overlap is left after the last window; it has no target of its own.
  buffer_.consume(length - (length == context ? static_cast<std::size_t>(options_.overlap_tokens) : 0));
  return true;
}

std::vector<std::int32_t> WindowReader::target_documents(const Sequence& window) const {
  std::vector<std::int32_t> documents(window.ids.size(), 0);
  // Every window but the last has the same length, so its number tells where it begins.
  const auto begin = window.number * (options_.context - options_.overlap_tokens);
  auto end = std::upper_bound(ends_.begin(), ends_.end(), begin + 1);
  for (std::size_t i = 0; i < documents.size(); ++i) {
    if (window.targets[i] == kNoTarget) continue;
    while (*end <= begin + static_cast<std::int64_t>(i) + 1) ++end;
    documents[i] = static_cast<std::int32_t>(end - ends_.begin());
  }
  return documents;
}

bool WindowReader::pull() {
  if (options_.tokens > 0 && tokens_ >= options_.tokens) return false;
  Document document;
  if (!reader_.next(document)) {
    if (tokens_ == 0) refuse_empty();
    return false;
  }
  if (document.text.empty()) return true;
  const auto tokens = encode_document(document.text, packing_, encode_, special_);
  bytes_ += static_cast<std::int64_t>(document.text.size());
  tokens_ += static_cast<std::int64_t>(tokens.ids.size());
  documents_.push_back(
      {document.number, base::hash64(document.text), static_cast<std::int64_t>(document.text.size())});
  ends_.push_back(tokens_);
  buffer_.append(tokens);
  return true;
}

void WindowReader::refuse_empty() const {
  const auto& source = reader_.source();
  const bool held_out = split_ == Split::held_out;
  const std::string advice =
      held_out ? held_out_advice(source, 1)
      : reader_.skipped_lines() > 0
          ? base::join(reader_.skipped_lines(),
                       " bad lines were skipped: leave skip_bad_lines out to see what is "
                       "wrong with the first")
          : "add text";
  throw base::DataError(base::join("source '", source.name, "': expected ", held_out ? "held-out " : "",
                                   "documents with text, found none among ", reader_.documents_passed(), "; ",
                                   advice, "."));
}

std::vector<Sequence> calibration_sequences(const SourceOptions& source, const PackingOptions& packing,
                                            const Encode& encode, const SpecialTokens& special,
                                            std::uint64_t seed, std::int64_t count,
                                            std::int64_t* skipped_lines) {
  SequencePacker packer({source}, packing, encode, special, seed, Split::training, Targets::measured);
  std::vector<Sequence> sequences;
  while (static_cast<std::int64_t>(sequences.size()) < count) {
    Sequence sequence = packer.next();
    if (packer.statistics().front().epoch > 0) break;
    sequences.push_back(std::move(sequence));
  }
  if (skipped_lines) *skipped_lines = packer.statistics().front().skipped_lines;
  return sequences;
}

}  // namespace retort::data
