#include "retort/compress/sparse_gpt.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "retort/base/error.h"
#include "retort/compress/group_mask.h"
#include "retort/model/tokens.h"

namespace retort::compress {
namespace {

constexpr std::int64_t kMostRemovals = 128;  // 4:8 has 70

void check_exact(const model::Pattern& pattern) {
  double ways = 1;
  for (std::int64_t i = 0; i < pattern.kept; ++i)
    ways *= static_cast<double>(pattern.group - i) / static_cast<double>(i + 1);
  base::require<base::UsageError>(ways <= kMostRemovals, "sparsify: the exact choice would compare ",
                                  static_cast<std::int64_t>(ways), " masks for each ", pattern.kept, ":",
                                  pattern.group, " group, at most ", kMostRemovals,
                                  " are sensible; choose the masks by saliency.");
}

void check_sweep(const at::Tensor& weight_RC, const SweepOptions& options, const std::string& who) {
  const auto group = options.pattern.group;
  require_groups(weight_RC.size(1), options.pattern, who);
  base::require<base::UsageError>(options.block_size > 0 && options.block_size % group == 0,
                                  "block_size: expected a multiple of ", group, ", found ",
                                  options.block_size, "; 128 is usual.");
  if (options.mask == MaskChoice::exact) check_exact(options.pattern);
}

// All ways to remove `removed` of `group` neighbours, in lexical order.
std::vector<std::vector<std::int64_t>> removals(const model::Pattern& pattern) {
  const auto removed = static_cast<std::size_t>(pattern.group - pattern.kept);
  std::vector<std::vector<std::int64_t>> all;
  std::vector<std::int64_t> chosen(removed);
  std::iota(chosen.begin(), chosen.end(), 0);
  for (;;) {
    all.push_back(chosen);
    std::size_t i = removed;
    while (i > 0 && chosen[i - 1] == pattern.group - static_cast<std::int64_t>(removed - i) - 1) --i;
    if (i == 0) return all;
    ++chosen[i - 1];
    for (; i < removed; ++i) chosen[i] = chosen[i - 1] + 1;
  }
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

  // One column: what is removed of it goes, the columns behind it in the block make up for it.
  at::Tensor eliminated_column(std::int64_t column, std::int64_t rest) {
    if (column % options_.pattern.group == 0) choose(column);
    const auto removed_R = removed_CR_.select(0, column);
    const auto error_R =
        (w_CR_.select(0, column) * removed_R).div_(diagonal_[static_cast<std::size_t>(column)]);
    const auto row_B = upper_CC_.select(0, column).narrow(0, column, rest);
    w_CR_.narrow(0, column, rest).addr_(row_B, error_R, /*beta=*/1, /*alpha=*/-1);
    w_CR_.select(0, column).masked_fill_(removed_R, 0);  // exactly, whatever the rounding
    return error_R.unsqueeze(0);
  }

  // A whole group: for each row the set S with the least loss w_S^T (G_SS)^-1 w_S goes, G = (H_{j:,j:})^-1 of
  // the group, and everything not yet fixed makes up for it, the group's other columns included; of equals
  // the first in lexical order.  With U = upper_CC: G = V^T V, V = U of the group, and the errors are V_S
  // (G_SS)^-1 w_S, so that sum e^2 is the loss and later columns change as after single columns.
  at::Tensor eliminated_group(std::int64_t column, std::int64_t rest) {
    const auto group = options_.pattern.group;
    const auto rows_MB = upper_CC_.narrow(0, column, group).narrow(1, column, rest);
    const auto factor_MM = rows_MB.narrow(1, 0, group), inverse_MM = at::mm(factor_MM.t(), factor_MM);
    const auto w_MR = w_CR_.narrow(0, column, group);
    at::Tensor least_R, errors_MR, removed_MR;
    for (const auto& set : removals(options_.pattern)) {
      const auto set_S = model::index_tensor(set, w_MR.device());
      const auto w_SR = w_MR.index_select(0, set_S);
      const auto solved_SR = at::linalg_solve(inverse_MM.index_select(0, set_S).index_select(1, set_S), w_SR);
      const auto loss_R = (solved_SR * w_SR).sum(at::IntArrayRef{0});
      const auto set_errors_MR = at::mm(factor_MM.index_select(1, set_S), solved_SR);
      auto set_MR = at::zeros_like(w_MR, at::kBool);
      set_MR.index_fill_(0, set_S, true);
      const auto better_R = least_R.defined() ? loss_R < least_R : at::ones_like(loss_R, at::kBool);
      least_R = least_R.defined() ? at::where(better_R, loss_R, least_R) : loss_R;
      errors_MR = errors_MR.defined() ? at::where(better_R, set_errors_MR, errors_MR) : set_errors_MR;
      removed_MR = removed_MR.defined() ? at::where(better_R, set_MR, removed_MR) : set_MR;
    }
    w_CR_.narrow(0, column, rest).addmm_(rows_MB.t(), errors_MR, /*beta=*/1, /*alpha=*/-1);
    removed_CR_.narrow(0, column, group).copy_(removed_MR);
    w_CR_.narrow(0, column, group).masked_fill_(removed_MR, 0);  // exactly, whatever the rounding
    return errors_MR;
  }

  void sweep_block(std::int64_t begin, std::int64_t count) {
    auto errors_BR = at::empty({count, w_CR_.size(1)}, w_CR_.options());
    const bool groups = options_.mask == MaskChoice::exact;
    for (std::int64_t j = 0, step = groups ? options_.pattern.group : 1; j < count; j += step)
      errors_BR.narrow(0, j, step)
          .copy_(groups ? eliminated_group(begin + j, count - j) : eliminated_column(begin + j, count - j));
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

double OutputError::relative() const {
  return whole > 0 ? std::sqrt(std::max(0.0, change) / whole) : 0;
}

OutputError output_error(const at::Tensor& weight_RC, const at::Tensor& sparse_RC,
                         const at::Tensor& hessian_CC) {
  return {.change = calibrate::output_error(weight_RC - sparse_RC, hessian_CC),
          .whole = calibrate::output_error(weight_RC, hessian_CC)};
}

SparseResult sparsify_weight(const at::Tensor& weight_RC, const at::Tensor& hessian_CC,
                             const calibrate::HessianFactor& factor, const SweepOptions& options,
                             const std::string& who) {
  check_sweep(weight_RC, options, who);
  const auto original_RC = weight_RC.to(hessian_CC.scalar_type());
  const auto alive_RC = original_RC.masked_fill(factor.dead_C, 0);
  Sweep sweep(alive_RC.t().clone(at::MemoryFormat::Contiguous), factor.upper_CC, options);
  sweep.run();

  const auto sparse_RC = sweep.weight_CR().t();
  SparseResult result;
  result.weight_RC = sparse_RC.to(weight_RC.scalar_type()).contiguous();
  result.mask_RC = sweep.removed_CR().logical_not().t().contiguous();
  result.loss = sweep.loss();
  result.identity_residual =
      identity_residual(result.loss, calibrate::output_error(alive_RC - sparse_RC, factor.damped_CC),
                        hessian_CC.scalar_type(), who);
  result.dampening_fraction = factor.dampening_fraction;
  return result;
}

SparseResult sparsify_weight(const at::Tensor& weight_RC, const at::Tensor& hessian_CC,
                             const SweepOptions& options, const std::string& who) {
  return sparsify_weight(weight_RC, hessian_CC,
                         calibrate::factorise(hessian_CC, options.dampening_fraction, who), options, who);
}

SparseResult mask_weight(const at::Tensor& weight_RC, const at::Tensor& hessian_CC, SparseMethod method,
                         const model::Pattern& pattern, const std::string& who) {
  require_groups(weight_RC.size(1), pattern, who);
  const auto original_RC = weight_RC.to(hessian_CC.scalar_type());
  auto score_RC = original_RC.abs();
  if (method == SparseMethod::wanda) score_RC.mul_(hessian_CC.diagonal().sqrt());
  SparseResult result;
  result.mask_RC = highest_of_groups(score_RC, pattern);
  const auto sparse_RC = original_RC * result.mask_RC;
  result.weight_RC = sparse_RC.to(weight_RC.scalar_type());
  result.loss = calibrate::output_error(original_RC - sparse_RC, hessian_CC);
  return result;
}

}  // namespace retort::compress
