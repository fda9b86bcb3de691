#include "retort/data/held_out_texts.h"

#include <algorithm>

#include "retort/base/hash.h"
#include "retort/data/text_runs.h"

namespace retort::data {

void HeldOutTexts::add(std::string_view text) {
  if (text.empty()) return;
  const auto number = static_cast<std::uint32_t>(seen_whole_.size());
  if (!documents_.try_emplace(base::hash64(text), number).second) return;
  seen_whole_.push_back(0);
  for (const auto hash : text_runs(text, limit_)) {
    const auto [run, added] = runs_.try_emplace(hash, Run{.document = number});
    if (!added) run->second.shared = true;
  }
  while (runs_.size() > most_runs_) thin_out();
}

void HeldOutTexts::thin_out() {
  limit_ /= 2;
  std::erase_if(runs_, [this](const auto& run) { return run.first >= limit_; });
}

void HeldOutTexts::restart() {
  std::fill(seen_whole_.begin(), seen_whole_.end(), 0);
  for (auto& [hash, run] : runs_) run.times = 0;
}

void HeldOutTexts::look_in(std::string_view text, const std::vector<std::uint64_t>& runs) {
  if (text.empty() || documents_.empty()) return;
  if (const auto whole = documents_.find(base::hash64(text)); whole != documents_.end())
    seen_whole_[whole->second] = 1;
  for (const auto hash : runs)
    if (const auto run = runs_.find(hash); run != runs_.end()) ++run->second.times;
}

std::int64_t HeldOutTexts::found() const {
  struct Counts {
    std::uint32_t runs = 0, seen = 0;
  };
  std::vector<Counts> counts(seen_whole_.size());
  for (const auto& [hash, run] : runs_) {
    if (run.shared || run.times > kCommonDocuments) continue;
    ++counts[run.document].runs;
    counts[run.document].seen += run.times > 0 ? 1 : 0;
  }
  std::int64_t found = 0;
  for (std::size_t i = 0; i < counts.size(); ++i)
    found += seen_whole_[i] != 0 || (counts[i].runs >= kLeastRuns && 2 * counts[i].seen >= counts[i].runs);
  return found;
}

}  // namespace retort::data
