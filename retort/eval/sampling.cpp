#include "retort/eval/sampling.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

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

// By falling logit, of equals the lower id; without those that cannot be chosen.
std::vector<Candidate> sorted(std::span<const double> logits_V, double temperature) {
  std::vector<Candidate> candidates;
  for (std::size_t id = 0; id < logits_V.size(); ++id)
    if (logits_V[id] != kNever)
      candidates.push_back({static_cast<std::int32_t>(id), logits_V[id] / temperature});
  std::ranges::stable_sort(candidates, std::ranges::greater{}, &Candidate::logit);
  return candidates;
}

double total(std::span<const Candidate> candidates) {
  return std::transform_reduce(candidates.begin(), candidates.end(), 0.0, std::plus{},
                               [](const Candidate& candidate) { return candidate.weight; });
}

// The `k` most likely, and others that are as likely as the last of them.
void keep_top_k(std::vector<Candidate>& candidates, std::size_t k) {
  auto kept = std::min(k, candidates.size());
  while (kept < candidates.size() && candidates[kept].logit == candidates[kept - 1].logit) ++kept;
  candidates.resize(kept);
}

// The most likely ones that together have a share of `top_p`; at least one.
void keep_top_p(std::vector<Candidate>& candidates, double top_p) {
  const double limit = top_p * total(candidates);
  double sum = 0;
  std::size_t kept = 0;
  while (kept < candidates.size() && (kept == 0 || sum < limit)) sum += candidates[kept++].weight;
  candidates.resize(kept);
}

// Those at least `min_p` times as likely as the first.
void keep_min_p(std::vector<Candidate>& candidates, double min_p) {
  const double limit = min_p * candidates.front().weight;
  std::erase_if(candidates, [&](const Candidate& candidate) { return candidate.weight < limit; });
}

std::int32_t drawn(std::span<const Candidate> candidates, base::Random& random) {
  double left = random.next_double() * total(candidates);
  for (const auto& candidate : candidates)
    if ((left -= candidate.weight) < 0) return candidate.id;
  return candidates.back().id;
}

// From all that may be chosen, in the order of ids: sorting a vocabulary takes longer than a small model
// does.
std::int32_t drawn_of_all(std::span<const double> logits_V, double temperature, base::Random& random) {
  const double most = std::ranges::max(logits_V);
  const auto weight = [&](double logit) { return std::exp((logit - most) / temperature); };
  std::vector<double> sums_V(logits_V.size());
  double sum = 0;
  for (std::size_t id = 0; id < logits_V.size(); ++id) sums_V[id] = sum += weight(logits_V[id]);
  // The first id whose sum is above: one without weight has the sum of the id before it.
  const auto found = std::ranges::upper_bound(sums_V, random.next_double() * sum);
  const auto last = found == sums_V.end() ? std::ranges::lower_bound(sums_V, sum) : found;
  return static_cast<std::int32_t>(last - sums_V.begin());
}

// As the text makes them, without rows that are no token.
std::vector<double> allowed(std::span<const double> logits_V, std::span<const std::int32_t> ids,
                            const Sampling& sampling, std::span<const std::int32_t> ids_without_token) {
  std::vector<double> logits(logits_V.begin(), logits_V.end());
  if (sampling.repetition_penalty != 1) penalise(logits, ids, sampling.repetition_penalty);
  for (const auto id : ids_without_token) logits[to_size(id)] = kNever;
  return logits;
}

}  // namespace

std::vector<Candidate> candidates_of(std::span<const double> logits_V, std::span<const std::int32_t> ids,
                                     const Sampling& sampling,
                                     std::span<const std::int32_t> ids_without_token) {
  auto candidates = sorted(allowed(logits_V, ids, sampling, ids_without_token), sampling.temperature);
  if (sampling.top_k > 0) keep_top_k(candidates, to_size(sampling.top_k));
  for (auto& candidate : candidates) candidate.weight = std::exp(candidate.logit - candidates.front().logit);
  if (sampling.top_p < 1) keep_top_p(candidates, sampling.top_p);
  if (sampling.min_p > 0) keep_min_p(candidates, sampling.min_p);
  return candidates;
}

std::int32_t next_id(std::span<const float> logits_V, std::span<const std::int32_t> ids,
                     const Sampling& sampling, std::span<const std::int32_t> ids_without_token,
                     base::Random& random) {
  require_finite(logits_V);
  const std::vector<double> wide(logits_V.begin(), logits_V.end());
  const bool leaves_some_out = sampling.top_k > 0 || sampling.top_p < 1 || sampling.min_p > 0;
  if (sampling.temperature > 0 && leaves_some_out)
    return drawn(candidates_of(wide, ids, sampling, ids_without_token), random);
  const auto logits = allowed(wide, ids, sampling, ids_without_token);
  if (sampling.temperature > 0) return drawn_of_all(logits, sampling.temperature, random);
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
