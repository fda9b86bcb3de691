#include "retort/ops/optimizer_step.h"

#include <ATen/ATen.h>

#include "retort/kernels/tables.h"
#include "retort/ops/operands.h"
#include "retort/ops/operation_clock.h"

namespace retort::ops {
namespace {

// The loops take bare pointers: a range of another type or length would be misread.
void require_range(const char* who, const char* what, const at::Tensor& x, at::ScalarType type,
                   std::int64_t count) {
  base::require<base::InternalError>(
      x.scalar_type() == type && x.numel() == count && x.is_contiguous(), who, ": ", what,
      ": expected a dense range of ", count, " elements of ", at::toString(type), ", found ", x.numel(),
      " of ", at::toString(x.scalar_type()), "; keep master parameters and optimizer state in float32.");
}

}  // namespace

void adamw_(at::Tensor p, const at::Tensor& g, at::Tensor m, at::Tensor v, at::Tensor copy,
            const AdamWSettings& settings) {
  const InOperation timed(Operation::optimizer);
  const auto count = p.numel();
  require_range("adamw_", "the parameters", p, at::kFloat, count);
  require_range("adamw_", "the gradient", g, at::kFloat, count);
  require_range("adamw_", "the first moment", m, at::kFloat, count);
  require_range("adamw_", "the second moment", v, at::kFloat, count);
  if (copy.defined()) require_range("adamw_", "the copy", copy, at::kBFloat16, count);
  choose(p, kernels::kOptimizer).adamw_(p, g, m, v, copy, settings);
}

at::Tensor sum_of_squares(const at::Tensor& x) {
  const InOperation timed(Operation::optimizer);
  require_range("sum_of_squares", "the range", x, at::kFloat, x.numel());
  return choose(x, kernels::kOptimizer).sum_of_squares(x);
}

}  // namespace retort::ops
