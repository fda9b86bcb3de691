#include "retort/kernels/tables.h"

#include <cmath>
#include <vector>

#include "retort/kernels/cpu/dispatch.h"

namespace retort::kernels::cpu {
namespace {

void adamw_(at::Tensor p, const at::Tensor& g, at::Tensor m, at::Tensor v, at::Tensor copy,
            const AdamWSettings& s) {
  const double step = static_cast<double>(s.step);
  const AdamWStep fixed{.lr = s.lr,
                        .beta1 = s.beta1,
                        .beta2 = s.beta2,
                        .eps = s.eps,
                        .weight_decay = s.weight_decay,
                        .correction1 = 1 - std::pow(s.beta1, step),
                        .correction2 = 1 - std::pow(s.beta2, step),
                        .gradient_scale = s.gradient_scale};
  auto* copy_data = copy.defined() ? data<Bf16>(copy) : nullptr;
  at::parallel_for(0, p.numel(), 8192, [&](std::int64_t begin, std::int64_t end) {
    vector_tables().adamw(data<float>(p) + begin, data<float>(g) + begin, data<float>(m) + begin,
                          data<float>(v) + begin, copy_data ? copy_data + begin : nullptr, fixed,
                          end - begin);
  });
}

at::Tensor sum_of_squares(const at::Tensor& x) {
  constexpr std::int64_t kPiece = 65536;
  const auto count = x.numel(), pieces = (count + kPiece - 1) / kPiece;
  std::vector<double> partial(static_cast<std::size_t>(pieces));
  at::parallel_for(0, pieces, 1, [&](std::int64_t begin, std::int64_t end) {
    for (auto i = begin; i < end; ++i)
      partial[static_cast<std::size_t>(i)] =
          vector_tables().sum_of_squares(data<float>(x) + i * kPiece, std::min(kPiece, count - i * kPiece));
  });
  double total = 0;
  for (const double value : partial) total += value;
  return at::scalar_tensor(total, at::kDouble);
}

}  // namespace

const OptimizerKernels kOptimizer{.adamw_ = adamw_, .sum_of_squares = sum_of_squares};

}  // namespace retort::kernels::cpu
