#include "retort/ops/logit_losses.h"

#include <cmath>
#include <tuple>
#include <vector>

#include "retort/ops/dispatch.h"
#include "retort/ops/reference.h"

namespace retort::ops {
namespace {

constexpr std::int64_t kRowsPerPiece =
    8;  // partial sums per piece of rows, added in order: independent of threads

// Runs body(begin, end) on pieces of rows in parallel and adds the results in order.
template <typename Body>
double sum_pieces(std::int64_t rows, std::int64_t rows_per_piece, Body body) {
  const auto pieces = (rows + rows_per_piece - 1) / rows_per_piece;
  std::vector<double> partial(static_cast<std::size_t>(pieces));
  at::parallel_for(0, pieces, 1, [&](std::int64_t begin, std::int64_t end) {
    for (auto piece = begin; piece < end; ++piece) {
      const auto row = piece * rows_per_piece;
      partial[static_cast<std::size_t>(piece)] = body(row, std::min(row + rows_per_piece, rows));
    }
  });
  double total = 0;
  for (const double value : partial) total += value;
  return total;
}

// The reference with autograd-free gradients, for devices without vector kernels.
double plain_loss(const at::Tensor& value_N, const at::Tensor& gradient_NV, const at::Tensor& targets_N,
                  double scale, at::Tensor& grad_NV) {
  grad_NV.add_(gradient_NV * targets_N.ge(0).unsqueeze(1), scale);
  return value_N.sum(at::kDouble).item<double>();
}

double cross_entropy_plain(const at::Tensor& logits_NV, const at::Tensor& targets_N, double scale,
                           at::Tensor& grad_NV) {
  auto gradient = at::softmax(logits_NV, -1);
  const auto index = targets_N.clamp_min(0).unsqueeze(1);
  gradient.scatter_add_(1, index, at::full_like(index, -1, gradient.options()));
  return plain_loss(reference::cross_entropy(logits_NV, targets_N), gradient, targets_N, scale, grad_NV);
}

double kl_plain(const at::Tensor& student_NV, const at::Tensor& teacher_NV, const at::Tensor& targets_N,
                const KlSpec& spec, double scale, at::Tensor& grad_NV) {
  const double t = spec.temperature, power = spec.temperature_squared ? t * t : 1.0;
  const auto log_s = at::log_softmax(student_NV / t, -1), log_t = at::log_softmax(teacher_NV / t, -1);
  const auto p = log_s.exp();
  const auto ratio = log_s - log_t;
  const auto gradient = spec.reverse ? p * (ratio - (p * ratio).sum(-1, true)) : p - log_t.exp();
  const auto value =
      reference::kl_divergence(student_NV, teacher_NV, targets_N, t, spec.reverse, spec.temperature_squared);
  return plain_loss(value, gradient, targets_N, scale * power / t, grad_NV);
}

}  // namespace

double cross_entropy_(const at::Tensor& logits_NV, const at::Tensor& targets_N, double gradient_scale,
                      at::Tensor grad_NV) {
  if (!on_cpu(logits_NV)) return cross_entropy_plain(logits_NV, targets_N, gradient_scale, grad_NV);
  const auto vocab = logits_NV.size(1);
  return with_element(logits_NV, [&](auto element) {
    using T = typename decltype(element)::type;
    return sum_pieces(logits_NV.size(0), kRowsPerPiece, [&](std::int64_t begin, std::int64_t end) {
      const LossRows spec{.targets = data<std::int64_t>(targets_N) + begin, .gradient_scale = gradient_scale};
      return kernels<T>().cross_entropy(data<T>(logits_NV) + begin * vocab, spec, end - begin, vocab,
                                        data<T>(grad_NV) + begin * vocab);
    });
  });
}

double kl_divergence_(const at::Tensor& student_NV, const at::Tensor& teacher_NV, const at::Tensor& targets_N,
                      const KlSpec& spec, double gradient_scale, at::Tensor grad_NV) {
  if (!on_cpu(student_NV)) return kl_plain(student_NV, teacher_NV, targets_N, spec, gradient_scale, grad_NV);
  const auto vocab = student_NV.size(1);
  const double power = spec.temperature_squared ? spec.temperature * spec.temperature : 1.0;
  const bool together = student_NV.is_contiguous() && teacher_NV.is_contiguous() && grad_NV.is_contiguous();
  return with_element(student_NV, [&](auto element) {
    using T = typename decltype(element)::type;
    const auto rows_from = [&](std::int64_t row, std::int64_t rows) {
      const LossRows counted{.targets = data<std::int64_t>(targets_N) + row,
                             .gradient_scale = gradient_scale,
                             .temperature = spec.temperature,
                             .reverse = spec.reverse,
                             .temperature_power_scale = power};
      return kernels<T>().kl_divergence(data<T>(student_NV) + row * student_NV.stride(0),
                                        data<T>(teacher_NV) + row * teacher_NV.stride(0), counted, rows,
                                        vocab, data<T>(grad_NV) + row * grad_NV.stride(0));
    };
    return sum_pieces(student_NV.size(0), kRowsPerPiece, [&](std::int64_t begin, std::int64_t end) {
      if (together) return rows_from(begin, end - begin);
      double sum = 0;
      for (auto row = begin; row < end; ++row) sum += rows_from(row, 1);
      return sum;
    });
  });
}

SquareSums square_sums(const at::Tensor& student_ND, const at::Tensor& teacher_ND) {
  if (!on_cpu(student_ND)) {
    const auto s = student_ND.to(at::kDouble), t = teacher_ND.to(at::kDouble);
    return {(s - t).square().sum().item<double>(), t.square().sum().item<double>()};
  }
  const auto dim = student_ND.size(1);
  std::vector<double> teacher_parts(static_cast<std::size_t>((student_ND.size(0) + 63) / 64));
  SquareSums sums{};
  with_element(student_ND, [&](auto element) {
    using T = typename decltype(element)::type;
    sums.error = sum_pieces(student_ND.size(0), 64, [&](std::int64_t begin, std::int64_t end) {
      double error = 0, teacher = 0;
      kernels<T>().square_sums(data<T>(student_ND) + begin * dim, data<T>(teacher_ND) + begin * dim,
                               (end - begin) * dim, &error, &teacher);
      teacher_parts[static_cast<std::size_t>(begin / 64)] = teacher;
      return error;
    });
  });
  for (const double part : teacher_parts) sums.teacher += part;
  return sums;
}

void scaled_difference(const at::Tensor& student_ND, const at::Tensor& teacher_ND, double factor,
                       at::Tensor out_ND) {
  if (!on_cpu(student_ND)) {
    out_ND.copy_((student_ND.to(statistics_type(student_ND)) - teacher_ND) * factor);
    return;
  }
  with_element(student_ND, [&](auto element) {
    using T = typename decltype(element)::type;
    at::parallel_for(0, student_ND.numel(), 16384, [&](std::int64_t begin, std::int64_t end) {
      kernels<T>().scaled_difference(data<T>(student_ND) + begin, data<T>(teacher_ND) + begin, factor,
                                     end - begin, data<T>(out_ND) + begin);
    });
  });
}

ChunkScores score_chunk(const at::Tensor& student_NV, const at::Tensor& teacher_NV,
                        const at::Tensor& targets_N, std::int64_t num_tokens) {
  ChunkScores scores;
  const auto counted = targets_N.ge(0);
  const auto nll_of = [&](const at::Tensor& log_p) {
    const auto picked = log_p.gather(1, targets_N.clamp_min(0).unsqueeze(1)).squeeze(1);
    return at::where(counted, -picked, at::zeros_like(picked));
  };
  // Of the tokens alone, where there are other columns.
  const auto over_tokens = [&](const at::Tensor& log_p) {
    if (num_tokens == 0 || num_tokens == log_p.size(1)) return log_p;
    return at::log_softmax(log_p.narrow(1, 0, num_tokens), -1);
  };
  const auto log_s = at::log_softmax(student_NV.to(statistics_type(student_NV)), -1);
  scores.nll_N = nll_of(log_s);
  at::Tensor top1_log_p;
  std::tie(top1_log_p, scores.top1_N) = log_s.max(-1);
  scores.confidence_N = top1_log_p.exp();
  if (teacher_NV.defined()) {
    const auto log_t = at::log_softmax(teacher_NV.to(statistics_type(teacher_NV)), -1);
    scores.teacher_nll_N = nll_of(log_t);
    scores.teacher_top1_N = log_t.argmax(-1);
    const auto common_s = over_tokens(log_s), common_t = over_tokens(log_t);
    const auto kl = (common_t.exp() * (common_t - common_s)).sum(-1);
    scores.kl_N = at::where(counted, kl, at::zeros_like(kl));
    scores.agreed_N = common_s.argmax(-1).eq(common_t.argmax(-1));
  }
  return scores;
}

}  // namespace retort::ops
