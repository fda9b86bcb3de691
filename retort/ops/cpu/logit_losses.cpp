#include "retort/ops/cpu/logit_losses.h"

#include <vector>

#include "retort/ops/cpu/dispatch.h"

namespace retort::ops::cpu {
namespace {

constexpr std::int64_t kRowsPerPiece =
    8;  // partial sums per piece of rows, added in order: independent of threads

// Runs body(begin, end, work) on pieces of rows in parallel and adds the results in order.  `work` are as
// many elements of C of a thread's own.
template <typename C, typename Body>
double sum_pieces(std::int64_t rows, std::int64_t rows_per_piece, std::int64_t work_elements, Body body) {
  const auto pieces = (rows + rows_per_piece - 1) / rows_per_piece;
  std::vector<double> partial(static_cast<std::size_t>(pieces));
  at::parallel_for(0, pieces, 1, [&](std::int64_t begin, std::int64_t end) {
    std::vector<C> work(static_cast<std::size_t>(work_elements));
    for (auto piece = begin; piece < end; ++piece) {
      const auto row = piece * rows_per_piece;
      partial[static_cast<std::size_t>(piece)] = body(row, std::min(row + rows_per_piece, rows), work.data());
    }
  });
  double total = 0;
  for (const double value : partial) total += value;
  return total;
}

}  // namespace

double cross_entropy_(const at::Tensor& logits_NV, const at::Tensor& targets_N, double gradient_scale,
                      at::Tensor grad_NV) {
  const auto vocab = logits_NV.size(1);
  return with_element(logits_NV, [&](auto element) {
    using T = typename decltype(element)::type;
    using C = typename ComputeOf<T>::type;
    return sum_pieces<C>(
        logits_NV.size(0), kRowsPerPiece, vocab, [&](std::int64_t begin, std::int64_t end, C* work_V) {
          const LossRows spec{.targets = data<std::int64_t>(targets_N) + begin,
                              .gradient_scale = gradient_scale};
          return kernels<T>().cross_entropy(data<T>(logits_NV) + begin * vocab, spec, end - begin, vocab,
                                            data<T>(grad_NV) + begin * vocab, work_V);
        });
  });
}

double kl_divergence_(const at::Tensor& student_NV, const at::Tensor& teacher_NV, const at::Tensor& targets_N,
                      const KlSpec& spec, double gradient_scale, at::Tensor grad_NV) {
  const auto vocab = student_NV.size(1);
  const double power = spec.temperature_squared ? spec.temperature * spec.temperature : 1.0;
  const bool together = student_NV.is_contiguous() && teacher_NV.is_contiguous() && grad_NV.is_contiguous();
  return with_element(student_NV, [&](auto element) {
    using T = typename decltype(element)::type;
    using C = typename ComputeOf<T>::type;
    const auto rows_from = [&](std::int64_t row, std::int64_t rows, C* work_2V) {
      const LossRows counted{.targets = data<std::int64_t>(targets_N) + row,
                             .gradient_scale = gradient_scale,
                             .temperature = spec.temperature,
                             .reverse = spec.reverse,
                             .temperature_power_scale = power};
      return kernels<T>().kl_divergence(data<T>(student_NV) + row * student_NV.stride(0),
                                        data<T>(teacher_NV) + row * teacher_NV.stride(0), counted, rows,
                                        vocab, data<T>(grad_NV) + row * grad_NV.stride(0), work_2V);
    };
    return sum_pieces<C>(student_NV.size(0), kRowsPerPiece, 2 * vocab,
                         [&](std::int64_t begin, std::int64_t end, C* work_2V) {
                           if (together) return rows_from(begin, end - begin, work_2V);
                           double sum = 0;
                           for (auto row = begin; row < end; ++row) sum += rows_from(row, 1, work_2V);
                           return sum;
                         });
  });
}

SquareSums square_sums(const at::Tensor& student_ND, const at::Tensor& teacher_ND) {
  const auto dim = student_ND.size(1);
  std::vector<double> teacher_parts(static_cast<std::size_t>((student_ND.size(0) + 63) / 64));
  SquareSums sums{};
  with_element(student_ND, [&](auto element) {
    using T = typename decltype(element)::type;
    sums.error = sum_pieces<T>(student_ND.size(0), 64, 0, [&](std::int64_t begin, std::int64_t end, T*) {
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
  with_element(student_ND, [&](auto element) {
    using T = typename decltype(element)::type;
    at::parallel_for(0, student_ND.numel(), 16384, [&](std::int64_t begin, std::int64_t end) {
      kernels<T>().scaled_difference(data<T>(student_ND) + begin, data<T>(teacher_ND) + begin, factor,
                                     end - begin, data<T>(out_ND) + begin);
    });
  });
}

}  // namespace retort::ops::cpu
