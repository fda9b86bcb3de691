#pragma once
// Which token comes next.

#include <cstdint>
#include <span>
#include <vector>

#include "retort/base/random.h"
#include "retort/eval/options.h"

namespace retort::eval {

/// A token that may come next.
struct Candidate {
  std::int32_t id;
  double logit;       ///< divided by the temperature
  double weight = 0;  ///< of its probability; weights are not divided by their sum
};

/// What next_id() draws from at a temperature above 0, by falling logit.
std::vector<Candidate> candidates_of(std::span<const double> logits_V, std::span<const std::int32_t> ids,
                                     const Sampling& sampling,
                                     std::span<const std::int32_t> ids_without_token);

/// The next token of a text, from its logits [V] and its ids so far, prompt included.  Greedy at temperature
/// 0 (ties: the lower id), else drawn.  What is left out is decided in the order of transformers: repetition
/// penalty, temperature, top_k, top_p, min_p.  Rows without a token are never chosen.  Throws
/// ValidationError where a logit is not finite.
std::int32_t next_id(std::span<const float> logits_V, std::span<const std::int32_t> ids,
                     const Sampling& sampling, std::span<const std::int32_t> ids_without_token,
                     base::Random& random);

/// Throws UsageError naming the first value that is out of its range.
void check(const Sampling& sampling);

}  // namespace retort::eval
