#include "retort/kernels/tables.h"

#include <vector>

#include "retort/kernels/cpu/dispatch.h"

namespace retort::kernels::cpu {
namespace {

constexpr std::int64_t kLossRowsPerPiece =
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

template <typename T>
LogitRows<T> rows_from(const at::Tensor& student_NV, const at::Tensor& teacher_NK,
                       const at::Tensor& targets_N, const at::Tensor& grad_NV, std::int64_t row) {
  LogitRows<T> of{.student_NV = data<T>(student_NV) + row * student_NV.stride(0),
                  .student_stride = student_NV.stride(0),
                  .teacher_NK = nullptr,
                  .teacher_stride = 0,
                  .targets = data<std::int64_t>(targets_N) + row,
                  .grad_NV = data<T>(grad_NV) + row * grad_NV.stride(0),
                  .grad_stride = grad_NV.stride(0),
                  .vocab = student_NV.size(1),
                  .shared = 0};
  if (!teacher_NK.defined()) return of;
  of.teacher_NK = data<T>(teacher_NK) + row * teacher_NK.stride(0);
  of.teacher_stride = teacher_NK.stride(0);
  of.shared = teacher_NK.size(1);
  return of;
}

at::Tensor logit_losses(const at::Tensor& student_NV, const at::Tensor& teacher_NK,
                        const at::Tensor& targets_N, const std::vector<LogitTerm>& terms,
                        at::Tensor grad_NV) {
  const auto rows = student_NV.size(0), vocab = student_NV.size(1), count = std::ssize(terms);
  const auto pieces = (rows + kLossRowsPerPiece - 1) / kLossRowsPerPiece;
  std::vector<double> values(static_cast<std::size_t>(pieces * count));
  auto sums = at::zeros({count}, at::kDouble);
  with_element(student_NV, [&](auto element) {
    using T = typename decltype(element)::type;
    using C = typename ComputeOf<T>::type;
    at::parallel_for(0, pieces, 1, [&](std::int64_t begin, std::int64_t end) {
      std::vector<C> work(static_cast<std::size_t>(logit_loss_elements(vocab)));
      for (auto piece = begin; piece < end; ++piece) {
        const auto row = piece * kLossRowsPerPiece;
        kernels<T>().logit_losses(rows_from<T>(student_NV, teacher_NK, targets_N, grad_NV, row),
                                  std::min(kLossRowsPerPiece, rows - row), terms.data(),
                                  static_cast<int>(count), work.data(), values.data() + piece * count);
      }
    });
  });
  for (std::size_t i = 0; i < values.size(); ++i) data<double>(sums)[i % terms.size()] += values[i];
  return sums;
}

SquareSums square_sums(const at::Tensor& student_ND, const at::Tensor& teacher_ND) {
  const auto dim = student_ND.size(1);
  std::vector<double> teacher_parts(static_cast<std::size_t>((student_ND.size(0) + 63) / 64));
  double error_sum = 0, teacher_sum = 0;
  with_element(student_ND, [&](auto element) {
    using T = typename decltype(element)::type;
    error_sum = sum_pieces(student_ND.size(0), 64, [&](std::int64_t begin, std::int64_t end) {
      double error = 0, teacher = 0;
      kernels<T>().square_sums(data<T>(student_ND) + begin * dim, data<T>(teacher_ND) + begin * dim,
                               (end - begin) * dim, &error, &teacher);
      teacher_parts[static_cast<std::size_t>(begin / 64)] = teacher;
      return error;
    });
  });
  for (const double part : teacher_parts) teacher_sum += part;
  return {at::scalar_tensor(error_sum, at::kDouble), at::scalar_tensor(teacher_sum, at::kDouble)};
}

void scaled_difference(const at::Tensor& student_ND, const at::Tensor& teacher_ND, const at::Tensor& factor,
                       at::Tensor out_ND) {
  const double by = factor.item<double>();
  with_element(student_ND, [&](auto element) {
    using T = typename decltype(element)::type;
    at::parallel_for(0, student_ND.numel(), 16384, [&](std::int64_t begin, std::int64_t end) {
      kernels<T>().scaled_difference(data<T>(student_ND) + begin, data<T>(teacher_ND) + begin, by,
                                     end - begin, data<T>(out_ND) + begin);
    });
  });
}

}  // namespace

const LogitLossKernels kLogitLosses{.has_logit_losses = [](std::int64_t, std::int64_t) { return true; },
                                    .logit_losses = logit_losses};

const HiddenLossKernels kHiddenLosses{.square_sums = square_sums, .scaled_difference = scaled_difference};

}  // namespace retort::kernels::cpu
