#pragma once
// A teacher's distributions kept as their most likely tokens and the probability of all others together: what
// a search compares thousands of candidates with, without the teacher's logits of every token each time.
//
// Shape legend: N tokens, V vocabulary, K tokens that are kept.

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace retort::ops {

struct TopKTeacher {
  at::Tensor ids_NK;      ///< int32
  at::Tensor log_p_NK;    ///< at temperature 1, not renormalised; float32, or float64 of float64 logits
  at::Tensor log_rest_N;  ///< of all other tokens together; minus infinity where there is none
};

/// K is `k`, or V where that is less.
TopKTeacher top_k_teacher(const at::Tensor& logits_NV, std::int64_t k);

struct TopKScores {
  at::Tensor nll_N;  ///< of the type of log_p_NK; 0 where a row does not count
  at::Tensor kl_N;
  at::Tensor kl_gap_N = {};  ///< at most so much is the KL over the vocabulary above kl_N
};

/// NLL, and KL(teacher || student) over K + 1 outcomes, the last being any other token: a lower bound of the
/// KL over the vocabulary, by the data processing inequality, and the same for K = V.  Its gap: the others
/// have the probability P of the teacher and Q of the student, each at most the least p that is kept and at
/// least the student's least q, so they lack no more than P log(p Q / (P q)).  targets_N is int64, -1 where a
/// row does not count.
TopKScores score_top_k(const at::Tensor& student_NV, const TopKTeacher& teacher, const at::Tensor& targets_N);

}  // namespace retort::ops
