#include "retort/data/sequence.h"

#include <algorithm>

#include "retort/base/error.h"

namespace retort::data {

std::vector<std::int32_t> encode_document(std::string_view text, const PackingOptions& packing,
                                          const Encode& encode, const SpecialTokens& special) {
  std::vector<std::int32_t> ids = encode(text);
  if (packing.bos) ids.insert(ids.begin(), special.bos);
  if (packing.eos) ids.push_back(special.eos);
  return ids;
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
      !packing.bos || special.bos >= 0,
      "packing: expected a begin-of-text token before each document, found a tokenizer "
      "without one; set bos to false.");
  base::require<base::UsageError>(
      !packing.eos || special.eos >= 0,
      "packing: expected an end-of-text token after each document, found a tokenizer "
      "without one; set eos to false.");
}

void TokenBuffer::append(const std::vector<std::int32_t>& document) {
  ids_.erase(ids_.begin(), ids_.begin() + static_cast<std::ptrdiff_t>(position_));
  begins_.erase(begins_.begin(), begins_.begin() + static_cast<std::ptrdiff_t>(position_));
  position_ = 0;
  ids_.insert(ids_.end(), document.begin(), document.end());
  begins_.resize(ids_.size(), 0);
  if (!document.empty()) begins_[ids_.size() - document.size()] = 1;
}

Sequence TokenBuffer::front(std::size_t length, bool across_documents) const {
  Sequence sequence;
  const auto first = ids_.begin() + static_cast<std::ptrdiff_t>(position_);
  sequence.ids.assign(first, first + static_cast<std::ptrdiff_t>(length));
  sequence.targets.assign(length, kNoTarget);
  sequence.starts.push_back(0);
  sequence.goes_on = length > 0 && begins_[position_] == 0;
  for (std::size_t i = 0; i < length; ++i) {
    const bool boundary = i > 0 && begins_[position_ + i] != 0 && !across_documents;
    if (boundary) sequence.starts.push_back(static_cast<std::int32_t>(i));
    if (i + 1 >= size()) continue;
    const bool target = across_documents || begins_[position_ + i + 1] == 0;
    if (target) sequence.targets[i] = ids_[position_ + i + 1];
  }
  return sequence;
}

}  // namespace retort::data
