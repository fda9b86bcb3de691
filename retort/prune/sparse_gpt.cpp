#include "retort/prune/sparse_gpt.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "retort/base/error.h"

namespace retort::prune {
namespace {

void check_shape(const at::Tensor& weight_RC, const SweepOptions& options, const std::string& who) {
  const auto group = options.pattern.group;
  base::require<base::UsageError>(weight_RC.size(1) % group == 0, who, ": has ", weight_RC.size(1),
                                  " columns, expected a multiple of ", group, "; leave this layer out.");
  base::require<base::UsageError>(options.block_size > 0 && options.block_size % group == 0,
                                  "block_size: expected a multiple of ", group, ", found ",
                                  options.block_size, "; 128 is usual.");
}

double half_trace(const at::Tensor& change_RC, const at::Tensor& hessian_CC) {
  return 0.5 * at::mm(change_RC, hessian_CC).mul_(change_RC).sum(at::kDouble).item<double>();
}

// The columns of W as rows of a contiguous matrix, so that a column is touched in one piece.
class Sweep {
 public:
  Sweep(at::Tensor columns_CR, const at::Tensor& upper_CC, const SweepOptions& options)
      : w_CR_(std::move(columns_CR)), upper_CC_(upper_CC), options_(options) {
    removed_CR_ = at::zeros(w_CR_.sizes(), w_CR_.options().dtype(at::kBool));
    const auto diagonal_C = upper_CC.diagonal().to(at::kCPU).to(at::kDouble).contiguous();
    diagonal_.assign(diagonal_C.const_data_ptr<double>(),
                     diagonal_C.const_data_ptr<double>() + diagonal_C.numel());
  }

  void run() {
    const auto columns = w_CR_.size(0);
    for (std::int64_t begin = 0; begin < columns; begin += options_.block_size)
      sweep_block(begin, std::min(options_.block_size, columns - begin));
  }
  const at::Tensor& weight_CR() const { return w_CR_; }
  const at::Tensor& removed_CR() const { return removed_CR_; }
  double loss() const { return loss_; }

 private:
  // Marks the weights of a group with the least w^2 / U_kk^2 as they stand now; of equals the first.
  void choose(std::int64_t begin) {
    const auto& [kept, group] = options_.pattern;
    const auto diagonal_M1 = upper_CC_.diagonal().narrow(0, begin, group).unsqueeze(1);
    const auto score_MR = (w_CR_.narrow(0, begin, group) / diagonal_M1).square_();
    const auto order_MR = std::get<1>(score_MR.sort(/*stable=*/true, /*dim=*/0, /*descending=*/false));
    removed_CR_.narrow(0, begin, group).scatter_(0, order_MR.narrow(0, 0, group - kept), true);
  }

  void sweep_block(std::int64_t begin, std::int64_t count) {
    auto errors_BR = at::empty({count, w_CR_.size(1)}, w_CR_.options());
    for (std::int64_t j = 0; j < count; ++j) {
      const auto column = begin + j;
      if (column % options_.pattern.group == 0) choose(column);
      auto error_R = errors_BR.select(0, j);
      const auto removed_R = removed_CR_.select(0, column);
      at::mul_out(error_R, w_CR_.select(0, column), removed_R);
      error_R.div_(diagonal_[static_cast<std::size_t>(column)]);
      const auto row_B = upper_CC_.select(0, column).narrow(0, column, count - j);
      w_CR_.narrow(0, column, count - j).addr_(row_B, error_R, /*beta=*/1, /*alpha=*/-1);
      w_CR_.select(0, column).masked_fill_(removed_R, 0);  // exactly, whatever the rounding
    }
    loss_ += errors_BR.square().sum(at::kDouble).item<double>() / 2;
    const auto end = begin + count, rest = w_CR_.size(0) - end;
    if (rest > 0)
      w_CR_.narrow(0, end, rest)
          .addmm_(upper_CC_.narrow(0, begin, count).narrow(1, end, rest).t(), errors_BR, /*beta=*/1,
                  /*alpha=*/-1);
  }

  at::Tensor w_CR_, upper_CC_, removed_CR_;
  const SweepOptions& options_;
  std::vector<double> diagonal_;
  double loss_ = 0;
};

// What must hold by construction: U (H + lambda I) U^T = I.
double identity_residual(double loss, double expected, at::ScalarType type, const std::string& who) {
  const double residual = std::abs(loss - expected) / std::max({std::abs(loss), std::abs(expected), 1e-300});
  const double allowed = type == at::kDouble ? 1e-8 : 1e-2;
  base::require<base::ValidationError>(
      std::isfinite(loss) && residual <= allowed, who, ": the loss of the sweep, ", loss,
      ", differs from the error of the weights, ", expected, ", by more than rounding (", residual,
      ", allowed ", allowed, "); use a larger dampening or more calibration text.");
  return residual;
}

}  // namespace

SparseResult sparsify_weight(const at::Tensor& weight_RC, const at::Tensor& hessian_CC,
                             const HessianFactor& factor, const SweepOptions& options,
                             const std::string& who) {
  check_shape(weight_RC, options, who);
  const auto original_RC = weight_RC.to(hessian_CC.scalar_type());
  const auto alive_RC = original_RC.masked_fill(factor.dead_C, 0);
  Sweep sweep(alive_RC.t().clone(at::MemoryFormat::Contiguous), factor.upper_CC, options);
  sweep.run();

  const auto sparse_RC = sweep.weight_CR().t(), change_RC = alive_RC - sparse_RC;
  SparseResult result;
  result.weight_RC = sparse_RC.to(weight_RC.scalar_type()).contiguous();
  result.mask_RC = sweep.removed_CR().logical_not().t().contiguous();
  result.loss = sweep.loss();
  result.identity_residual =
      identity_residual(result.loss, half_trace(change_RC, factor.damped_CC), hessian_CC.scalar_type(), who);
  result.dampening_fraction = factor.dampening_fraction;
  const double before = half_trace(original_RC, hessian_CC);
  result.relative_error =
      before > 0 ? std::sqrt(std::max(0.0, half_trace(change_RC, hessian_CC)) / before) : 0;
  return result;
}

SparseResult sparsify_weight(const at::Tensor& weight_RC, const at::Tensor& hessian_CC,
                             const SweepOptions& options, const std::string& who) {
  return sparsify_weight(weight_RC, hessian_CC, factorise(hessian_CC, options.dampening_fraction, who),
                         options, who);
}

}  // namespace retort::prune
