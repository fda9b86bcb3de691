// Arguments that a kernel takes as one: for the host's compiler and for the one at run time, so nothing is
// included here.
#ifndef RETORT_OPS_CUDA_ARGUMENTS_H
#define RETORT_OPS_CUDA_ARGUMENTS_H

namespace retort_kernels {

/// Rows of logits, as logit_losses takes them.  Strides in elements.
struct LogitRows {
  long long rows, vocab, student_stride;
  long long tokens, teacher_stride;  ///< columns that the teacher has; 0: there is none
  long long gradient_stride;
};

constexpr int kMostTerms = 3;

/// As kernels::LogitTermKind.
enum LogitTermKind : int { kCrossEntropy, kForwardKl, kReverseKl };

/// The terms of a loss on logits, side by side.
struct LogitTerms {
  LogitTermKind kind[kMostTerms];
  float inverse_temperature[kMostTerms];
  float value_scale[kMostTerms];     ///< of the value
  float gradient_scale[kMostTerms];  ///< of the gradient, everything included
};

/// As kernels::RelativeError.
struct RelativeErrors {
  double eps, blocks, step_tokens, weight;
};

/// Of one update; the rests are 1 less a beta.
struct AdamWStep {
  float gradient_scale, beta1, first_rest, beta2, second_rest;
  float kept_by_decay, inverse_correction2, eps, step_size;
};

}  // namespace retort_kernels

#endif
