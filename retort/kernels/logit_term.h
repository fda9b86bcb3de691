#pragma once
// What a loss on logits asks of the kernels that compute it.  Torch-free, because those of CPUs are.

#include <cstdint>

namespace retort::kernels {

/// The losses that kernels know.
enum class LogitTermKind : std::uint8_t {
  cross_entropy,  ///< -log softmax(student)[target]
  forward_kl,     ///< KL(teacher || student)
  reverse_kl,     ///< KL(student || teacher)
};

/// One loss on logits.
struct LogitTerm {
  LogitTermKind kind = LogitTermKind::cross_entropy;
  double temperature = 1;     ///< of both distributions of a divergence; cross-entropy has 1
  double value_scale = 1;     ///< of the value
  double gradient_scale = 1;  ///< of the gradient by the logits over the temperature, all factors included
};

}  // namespace retort::kernels
