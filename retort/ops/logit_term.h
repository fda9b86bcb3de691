#pragma once
// What a loss on logits asks of the loop over them.  Torch-free, because that loop is.

#include <cstdint>

namespace retort::ops {

enum class LogitTermKind : std::uint8_t {
  cross_entropy,  ///< -log softmax(student)[target]
  forward_kl,     ///< KL(teacher || student)
  reverse_kl,     ///< KL(student || teacher)
};

/// One loss on logits.
struct LogitTerm {
  LogitTermKind kind = LogitTermKind::cross_entropy;
  double temperature = 1;     ///< of both distributions of a divergence
  double value_scale = 1;     ///< of a divergence and its gradient: T squared, or 1
  double gradient_scale = 1;  ///< of the gradient: weight over the number of rows of the step that count
};

}  // namespace retort::ops
