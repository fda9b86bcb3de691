#include "retort/eval/sampling.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "retort/base/error.h"
#include "retort/base/index.h"

namespace retort::eval {
namespace {

using base::to_size;

constexpr double kNever = -std::numeric_limits<double>::infinity();

void require_finite(std::span<const float> logits_V) {
  const bool finite = std::ranges::all_of(logits_V, [](float x) { return std::isfinite(x); });
  base::require<base::ValidationError>(
      finite, "generation: the model's logits are not finite; the model is damaged.");
}

// Logits of ids that the text has become less likely: source CTRL, arXiv 1909.05858, equation 5.
void penalise(std::span<double> logits_V, std::span<const std::int32_t> ids, double penalty) {
  std::vector<std::int32_t> once(ids.begin(), ids.end());
  std::ranges::sort(once);
  const auto last = std::unique(once.begin(), once.end());
  for (auto id = once.begin(); id != last; ++id) {
    auto& logit = logits_V[static_cast<std::size_t>(*id)];
    logit = logit < 0 ? logit * penalty : logit / penalty;
  }
}

bool comes_before(const Candidate& a, const Candidate& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
}

// Tokens by falling logit, of equals the lower id.  They are sorted as far as somebody looks: a vocabulary
// has thousands of tokens that are hardly ever drawn.
class Falling {
 public:
  Falling(std::span<const double> logits_V, double temperature) {
    for (std::size_t id = 0; id < logits_V.size(); ++id)
      if (logits_V[id] != kNever) all_.push_back({static_cast<std::int32_t>(id), logits_V[id] / temperature});
  }

  // The `k` most likely, and others that are as likely as the last of them.
  void keep_top_k(std::size_t k) {
    auto kept = std::min(k, all_.size());
    while (kept < all_.size() && at(kept).logit == at(kept - 1).logit) ++kept;
    keep(kept);
  }

  void weigh() {
    const double most = at(0).logit;
    for (auto& candidate : all_) candidate.weight = std::exp(candidate.logit - most);
  }

  // The most likely ones that together have a share of `top_p`; at least one.
  void keep_top_p(double top_p) {
    const double limit = top_p * total();
    double sum = 0;
    std::size_t kept = 0;
    while (kept < all_.size() && (kept == 0 || sum < limit)) sum += at(kept++).weight;
    keep(kept);
  }

  // Those at least `min_p` times as likely as the first.
  void keep_min_p(double min_p) {
    const double limit = min_p * at(0).weight;
    std::size_t kept = 0;
    while (kept < all_.size() && at(kept).weight >= limit) ++kept;
    keep(kept);
  }

  std::int32_t drawn(base::Random& random) {
    double left = random.next_double() * total();
    for (std::size_t n = 0; n < all_.size(); ++n)
      if ((left -= at(n).weight) < 0) return at(n).id;
    return all_.back().id;
  }

  std::vector<Candidate> sorted() && {
    sort_up_to(all_.size());
    return std::move(all_);
  }

 private:
  const Candidate& at(std::size_t n) {
    if (n >= sorted_) sort_up_to(n + 1);
    return all_[n];
  }

  void sort_up_to(std::size_t count) {
    constexpr std::size_t kLeast = 64;
    const auto wanted = std::min(all_.size(), std::max({count, kLeast, 4 * sorted_}));
    const auto place = [&](std::size_t n) { return all_.begin() + static_cast<std::ptrdiff_t>(n); };
    std::partial_sort(place(sorted_), place(wanted), all_.end(), comes_before);
    sorted_ = wanted;
  }

  void keep(std::size_t count) {
    if (count > 0 && count < all_.size()) (void)at(count - 1);
    all_.resize(count);
    sorted_ = std::min(sorted_, count);
  }

  double total() const {
    return std::transform_reduce(all_.begin(), all_.end(), 0.0, std::plus{},
                                 [](const Candidate& candidate) { return candidate.weight; });
  }

  std::vector<Candidate> all_;
  std::size_t sorted_ = 0;
};

// As the text makes them, without rows that are no token.
std::vector<double> allowed(std::span<const double> logits_V, std::span<const std::int32_t> ids,
                            const Sampling& sampling, std::span<const std::int32_t> ids_without_token) {
  std::vector<double> logits(logits_V.begin(), logits_V.end());
  if (sampling.repetition_penalty != 1) penalise(logits, ids, sampling.repetition_penalty);
  for (const auto id : ids_without_token) logits[to_size(id)] = kNever;
  return logits;
}

Falling falling(std::span<const double> logits_V, std::span<const std::int32_t> ids, const Sampling& sampling,
                std::span<const std::int32_t> ids_without_token) {
  Falling candidates(allowed(logits_V, ids, sampling, ids_without_token), sampling.temperature);
  if (sampling.top_k > 0) candidates.keep_top_k(to_size(sampling.top_k));
  candidates.weigh();
  if (sampling.top_p < 1) candidates.keep_top_p(sampling.top_p);
  if (sampling.min_p > 0) candidates.keep_min_p(sampling.min_p);
  return candidates;
}

}  // namespace

std::vector<Candidate> candidates_of(std::span<const double> logits_V, std::span<const std::int32_t> ids,
                                     const Sampling& sampling,
                                     std::span<const std::int32_t> ids_without_token) {
  return falling(logits_V, ids, sampling, ids_without_token).sorted();
}

std::int32_t next_id(std::span<const float> logits_V, std::span<const std::int32_t> ids,
                     const Sampling& sampling, std::span<const std::int32_t> ids_without_token,
                     base::Random& random) {
  require_finite(logits_V);
  const std::vector<double> wide(logits_V.begin(), logits_V.end());
  if (sampling.temperature > 0) return falling(wide, ids, sampling, ids_without_token).drawn(random);
  const auto logits = allowed(wide, ids, sampling, ids_without_token);
  return static_cast<std::int32_t>(std::ranges::max_element(logits) - logits.begin());
}

void check(const Sampling& s) {
  const auto require = [](bool good, const char* what, double found) {
    base::require<base::UsageError>(good, "generation: expected ", what, ", found ", found, ".");
  };
  require(std::isfinite(s.temperature) && s.temperature >= 0, "a temperature of 0 (greedy) or more",
          s.temperature);
  require(s.top_p > 0 && s.top_p <= 1, "a top_p above 0 and at most 1", s.top_p);
  require(s.min_p >= 0 && s.min_p <= 1, "a min_p from 0 to 1", s.min_p);
  require(s.top_k >= 0, "a top_k of 0 (all) or more", static_cast<double>(s.top_k));
  require(std::isfinite(s.repetition_penalty) && s.repetition_penalty > 0, "a repetition_penalty above 0",
          s.repetition_penalty);
}

}  // namespace retort::eval
