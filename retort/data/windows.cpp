#include "retort/data/windows.h"

#include <algorithm>
#include <string>
#include <utility>

#include "retort/base/error.h"
#include "retort/base/hash.h"
#include "retort/base/random.h"
#include "retort/data/held_out_part.h"
#include "retort/data/packer.h"
#include "retort/data/shuffled_source.h"
#include "retort/data/tokenized.h"
#include "retort/data/whole_documents.h"

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
  if (reader_.source().chat) return next_of_conversation(window);
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

bool WindowReader::next_of_conversation(Sequence& window) {
  while (conversation_.empty() && pull()) {
  }
  if (conversation_.empty()) return false;
  window = std::move(conversation_.front());
  conversation_.pop_front();
  window.number = windows_++;
  return true;
}

std::vector<std::int32_t> WindowReader::target_documents(const Sequence& window) const {
  if (reader_.source().chat)  // the last one that was read is that of the window
    return std::vector<std::int32_t>(window.ids.size(), static_cast<std::int32_t>(documents_.size()) - 1);
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
  const bool chat = reader_.source().chat;
  const auto tokens = tokenized(document, reader_.source(), packing_, encode_, special_);
  refused_ += tokens ? 0 : 1;
  if (!tokens) return true;
  if (chat) conversation_ = windows_of(tokens->ids, tokens->counts, options_.context);
  unanswered_ += chat && conversation_.empty() ? 1 : 0;
  if (chat && conversation_.empty()) return true;
  bytes_ += tokens->counted_bytes;
  tokens_ += static_cast<std::int64_t>(tokens->ids.size());
  documents_.push_back({document.number, base::hash64(document.text), tokens->counted_bytes});
  ends_.push_back(tokens_);
  if (!chat) buffer_.append(*tokens);
  return true;
}

void WindowReader::refuse_empty() const {
  const auto& source = reader_.source();
  const bool held_out = split_ == Split::held_out;
  const std::string advice =
      unanswered_ > 0
          ? base::join(unanswered_,
                       " conversations have no answer: give it some with messages of the assistant")
      : held_out ? held_out_advice(source, 1)
      : reader_.skipped_lines() > 0
          ? base::join(reader_.skipped_lines(),
                       " bad lines were skipped: leave skip_bad_lines out to see what is "
                       "wrong with the first")
          : "add text";
  throw base::DataError(base::join("source '", source.name, "': expected ", held_out ? "held-out " : "",
                                   "documents with text, found none among ", reader_.documents_passed(), "; ",
                                   advice, "."));
}

std::deque<Sequence> windows_of(const std::vector<std::int32_t>& ids, const std::vector<char>& counts,
                                std::int64_t context) {
  const auto count = std::ssize(ids) - 1;  // targets are ids[1, count]
  std::deque<Sequence> windows;
  for (std::int64_t done = 0; done < count;) {
    const auto end = std::min(done + context, count);
    const auto begin = std::max<std::int64_t>(0, end - context);
    Sequence window;
    window.ids.assign(ids.begin() + begin, ids.begin() + end);
    window.targets.assign(ids.begin() + begin + 1, ids.begin() + end + 1);
    bool has_target = false;
    for (auto i = begin; i < end; ++i) {
      const bool is_target = i >= done && (counts.empty() || counts[static_cast<std::size_t>(i + 1)] != 0);
      if (!is_target) window.targets[static_cast<std::size_t>(i - begin)] = kNoTarget;
      has_target |= is_target;
    }
    window.starts = {0};
    if (has_target) windows.push_back(std::move(window));
    done = end;
  }
  return windows;
}

namespace {

// Whole documents up to so many sequences of text, packed together.
std::vector<Sequence> whole_sequences(const SourceOptions& source, const PackingOptions& packing,
                                      const Encode& encode, const SpecialTokens& special, std::uint64_t seed,
                                      std::int64_t count, std::int64_t* skipped_lines) {
  ShuffledSource shuffled(DocumentReader(source, Split::training),
                          {.seed = seed, .documents = packing.shuffle_documents});
  std::vector<DocumentTokens> whole;
  std::int64_t tokens = 0, refused = 0;
  for (Document document; tokens < count * packing.sequence_length;) {
    shuffled.next(document);
    if (shuffled.place().epoch > 0) break;
    auto read = tokenized(document, source, packing, encode, special);
    refused += read ? 0 : 1;
    const auto size = read ? std::ssize(read->ids) : 0;
    const bool fits = size > 0 && size <= packing.sequence_length;
    if (!fits || read->num_targets(Targets::measured, packing.attend_across_documents) == 0) continue;
    if ((tokens += size) <= count * packing.sequence_length) whole.push_back(std::move(*read));
  }
  if (skipped_lines) *skipped_lines = shuffled.reader().skipped_lines() + refused;
  auto sequences = packed_whole(std::move(whole), packing.sequence_length, packing.attend_across_documents,
                                Targets::measured);
  base::Random random(seed, base::stream_of("calibration/" + source.name));
  base::shuffle(sequences, random);
  return sequences;
}

}  // namespace

std::vector<Sequence> calibration_sequences(const SourceOptions& source, const PackingOptions& packing,
                                            const Encode& encode, const SpecialTokens& special,
                                            std::uint64_t seed, std::int64_t count,
                                            std::int64_t* skipped_lines) {
  if (packing.keeps_whole(source))
    return whole_sequences(source, packing, encode, special, seed, count, skipped_lines);
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
