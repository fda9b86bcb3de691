#include "retort/data/sequence.h"

#include <algorithm>

#include "retort/base/error.h"

namespace retort::data {

bool has_target(const std::vector<Sequence>& sequences) {
  return std::ranges::any_of(sequences, [](const Sequence& sequence) {
    return std::ranges::any_of(sequence.targets, [](std::int32_t target) { return target != kNoTarget; });
  });
}

std::int32_t begin_of_text(Bos bos, const SpecialTokens& special) {
  return bos == Bos::never ? -1 : special.bos;
}

std::int64_t DocumentTokens::num_targets(Targets targets, bool across_documents) const {
  const auto begin = targets == Targets::learned ? std::size_t{0} : text_begin;
  const auto end = targets == Targets::learned ? ids.size() : text_end;
  if (!counts.empty()) {
    const auto first = std::ptrdiff_t(begin) + (begin > 0 || across_documents ? 0 : 1);
    return first >= std::ptrdiff_t(end)
               ? 0
               : std::count(counts.begin() + first, counts.begin() + std::ptrdiff_t(end), 1);
  }
  const bool first_is_one = begin > 0 || across_documents;
  return static_cast<std::int64_t>(end - begin) - (first_is_one || begin == end ? 0 : 1);
}

DocumentTokens encode_document(std::string_view text, const PackingOptions& packing, const Encode& encode,
                               const SpecialTokens& special) {
  DocumentTokens document{.ids = encode(text)};
  document.bytes = document.counted_bytes = static_cast<std::int64_t>(text.size());
  document.text_end = document.ids.size();
  if (const auto bos = begin_of_text(packing.bos, special); bos >= 0) {
    const bool is_written = !document.ids.empty() && document.ids.front() == bos;  // in the text already
    if (!is_written) document.ids.insert(document.ids.begin(), bos);
    document.text_begin = 1;
    document.text_end = document.ids.size();
  }
  if (packing.eos) document.ids.push_back(special.eos);
  return document;
}

void check_packing(const PackingOptions& packing, const SpecialTokens& special) {
  constexpr std::int64_t kMaxTokens = std::int64_t{1} << 24;
  const std::int64_t length = packing.sequence_length;
  base::require<base::UsageError>(length >= 1 && length <= kMaxTokens, "packing: expected a length of 1 to ",
                                  kMaxTokens, " tokens, found ", length, ".");
  base::require<base::UsageError>(packing.shuffle_documents >= 1,
                                  "packing: expected at least 1 document to shuffle among, found ",
                                  packing.shuffle_documents, ".");
  base::require<base::UsageError>(packing.shuffle_sequences >= 1,
                                  "packing: expected shuffle_sequences of 1 or more, found ",
                                  packing.shuffle_sequences, ".");
  base::require<base::UsageError>(
      packing.bos != Bos::always || special.bos >= 0,
      "packing: expected a begin-of-text token before each document, found a tokenizer "
      "without one; leave bos out or set it to false.");
  base::require<base::UsageError>(
      !packing.eos || special.eos >= 0,
      "packing: expected an end-of-text token after each document, found a tokenizer "
      "without one; set eos to false.");
}

void TokenBuffer::append(const DocumentTokens& document) {
  tokens_.erase(tokens_.begin(), tokens_.begin() + static_cast<std::ptrdiff_t>(position_));
  position_ = 0;
  for (std::size_t i = 0; i < document.ids.size(); ++i)
    tokens_.push_back({.id = document.ids[i],
                       .begins_document = i == 0,
                       .is_text = i >= document.text_begin && i < document.text_end,
                       .counts = document.counts.empty() || document.counts[i] != 0});
}

Sequence TokenBuffer::front(std::size_t length, bool across_documents, Targets targets) const {
  Sequence sequence;
  sequence.targets.assign(length, kNoTarget);
  sequence.starts.push_back(0);
  sequence.goes_on = length > 0 && !tokens_[position_].begins_document;
  for (std::size_t i = 0; i < length; ++i) {
    const Token& token = tokens_[position_ + i];
    sequence.ids.push_back(token.id);
    const bool boundary = i > 0 && token.begins_document && !across_documents;
    if (boundary) sequence.starts.push_back(static_cast<std::int32_t>(i));
    if (i + 1 >= size()) continue;
    const Token& next = tokens_[position_ + i + 1];
    const bool same_text = across_documents || !next.begins_document;
    const bool counts = next.counts && (targets == Targets::learned || next.is_text);
    if (same_text && counts) sequence.targets[i] = next.id;
  }
  return sequence;
}

}  // namespace retort::data
