#include "retort/data/whole_documents.h"

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

namespace retort::data {
namespace {

// Where documents go, of which each is no longer than the one before.
class BestFit {
 public:
  explicit BestFit(std::int64_t length) : length_(length) {}

  std::size_t sequence_for(std::int64_t size) {
    const auto found = rooms_.lower_bound({size, 0});
    const auto [room, sequence] = found != rooms_.end() ? *found : std::pair{length_, count_++};
    if (found != rooms_.end()) rooms_.erase(found);
    if (room > size) rooms_.emplace(room - size, sequence);
    return sequence;
  }
  std::size_t count() const { return count_; }

 private:
  std::int64_t length_;
  std::size_t count_ = 0;
  std::set<std::pair<std::int64_t, std::size_t>> rooms_;  // of each sequence, with its number
};

}  // namespace

std::vector<Sequence> packed_whole(std::vector<DocumentTokens> documents, std::int64_t length,
                                   bool across_documents, Targets targets) {
  std::ranges::stable_sort(documents,
                           [](const auto& a, const auto& b) { return a.ids.size() > b.ids.size(); });
  std::vector<TokenBuffer> buffers;
  BestFit fit(length);
  for (const auto& document : documents) {
    const auto sequence = fit.sequence_for(std::ssize(document.ids));
    buffers.resize(fit.count());
    buffers[sequence].append(document);
  }
  std::vector<Sequence> sequences;
  for (const auto& buffer : buffers)
    sequences.push_back(buffer.front(buffer.size(), across_documents, targets));
  return sequences;
}

std::int64_t sequences_of_whole(std::vector<std::int64_t> sizes, std::int64_t length) {
  std::ranges::sort(sizes, std::greater());
  BestFit fit(length);
  for (const auto size : sizes) fit.sequence_for(size);
  return static_cast<std::int64_t>(fit.count());
}

std::int64_t pad(Sequence& sequence, std::int64_t length, std::int32_t id) {
  const auto size = std::ssize(sequence.ids);
  if (size >= length) return 0;
  sequence.starts.push_back(static_cast<std::int32_t>(size));
  sequence.ids.resize(static_cast<std::size_t>(length), id);
  sequence.targets.resize(static_cast<std::size_t>(length), kNoTarget);
  return length - size;
}

}  // namespace retort::data
