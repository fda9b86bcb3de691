#pragma once
// How much a block, or a half of it, turns the hidden state: what one-shot depth pruning goes by.
//
// Shape legend: N tokens, D hidden.

#include <vector>

#include "retort/calibrate/text.h"
#include "retort/model/weights.h"

namespace retort::calibrate {

/// 1 - cos(x, y), x the hidden state before and y after; mean over tokens, then over sources with equal
/// weights. 0: the direction stays.  A half that a block lacks has 0.  Source: ShortGPT (Men et al. 2024),
/// block influence, for each token on its own.
struct Influence {
  double block = 0;
  double attention = 0;
  double mlp = 0;
};

/// Measures each block of the model in one pass over the text.  Throws ValidationError naming the
/// block whose output is not finite.
std::vector<Influence> influences(const model::Weights& weights, const std::vector<Batch>& batches);

}  // namespace retort::calibrate
