#include "retort/kernels/cpu/panel_product.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>

#include "retort/kernels/cpu/dispatch.h"
#include "retort/kernels/cpu/ranges.h"
#include "retort/kernels/cpu/team.h"

namespace retort::kernels::cpu {
namespace {

// Rows of x that stay in the cache while a panel goes by, and words of a panel that do while rows go by.
constexpr std::int64_t kBlockRows = 96, kBlockInner = 1024;
// Multiplications of a task, below which handing it over takes longer.
constexpr std::int64_t kLeastPanelMultiplications = 1 << 15;

template <typename T>
class Product {
  using C = typename ComputeOf<T>::type;

 public:
  Product(const at::Tensor& x_NK, const at::Tensor& panels, const at::Tensor& out_NM)
      : panels_(data<T>(panels)),
        x_(data<C>(x_NK)),
        out_(data<C>(out_NM)),
        rows_(x_NK.size(0)),
        inputs_(x_NK.size(1)),
        outputs_(out_NM.size(1)) {}

  // Tasks are panels times blocks of rows; neighbours share a block.
  void run() const {
    const auto panels = ceil_div(outputs_, kPanelColumns), blocks = ceil_div(rows_, kBlockRows);
    const auto work = std::max<std::int64_t>(1, std::min(rows_, kBlockRows) * inputs_ * kPanelColumns);
    for_ranges(panels * blocks, std::max<std::int64_t>(1, kLeastPanelMultiplications / work),
               [&](std::int64_t begin, std::int64_t end) {
                 for (auto task = begin; task < end; ++task) one(task % panels, task / panels);
               });
  }

 private:
  void one(std::int64_t panel, std::int64_t block) const {
    const auto first = block * kBlockRows, rows = std::min(kBlockRows, rows_ - first);
    const auto columns = std::min(kPanelColumns, outputs_ - panel * kPanelColumns);
    C edge[kBlockRows * kPanelColumns];
    const bool whole = columns == kPanelColumns;
    C* const out = out_ + first * outputs_ + panel * kPanelColumns;
    for (std::int64_t k = 0; k < inputs_; k += kBlockInner)
      kernels<T>().panel_product({.panel = panels_ + (panel * inputs_ + k) * kPanelColumns,
                                  .x = x_ + first * inputs_ + k,
                                  .x_row = inputs_,
                                  .out = whole ? out : edge,
                                  .out_row = whole ? outputs_ : kPanelColumns,
                                  .rows = rows,
                                  .inner = std::min(kBlockInner, inputs_ - k),
                                  .add = k > 0});
    if (!whole) copy_part(edge, kPanelColumns, out, outputs_, rows, columns);
  }

  const T* panels_;
  const C* x_;
  C* out_;
  std::int64_t rows_, inputs_, outputs_;
};

}  // namespace

bool holds_bfloat16_numbers(const at::Tensor& x) {
  return x.scalar_type() == at::kFloat &&
         x.view(at::kInt).bitwise_and(0xffff).count_nonzero().item<std::int64_t>() == 0;
}

std::int64_t panel_elements(std::int64_t outputs, std::int64_t inputs) {
  return ceil_div(outputs, kPanelColumns) * kPanelColumns * inputs;
}

at::Tensor packed_panels(const at::Tensor& given_MK) {
  const auto w_MK = holds_bfloat16_numbers(given_MK) ? given_MK.to(at::kBFloat16) : given_MK.contiguous();
  const auto outputs = w_MK.size(0), inputs = w_MK.size(1), panels = ceil_div(outputs, kPanelColumns);
  const auto result = at::empty({panels, inputs, kPanelColumns}, w_MK.options());
  with_element(w_MK, [&](auto element) {
    using T = typename decltype(element)::type;
    const T* w = data<T>(w_MK);
    T* out = data<T>(result);
    at::parallel_for(0, panels, 1, [&](std::int64_t first, std::int64_t last) {
      for (auto panel = first; panel < last; ++panel)
        kernels<T>().pack_panel(w + panel * kPanelColumns * inputs, inputs,
                                std::min(kPanelColumns, outputs - panel * kPanelColumns), inputs,
                                out + panel * kPanelColumns * inputs);
    });
  });
  return result;
}

at::Tensor panel_product(const at::Tensor& x_NK, const at::Tensor& panels, std::int64_t outputs) {
  const auto compute = x_NK.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  const auto wide_NK = x_NK.to(compute).contiguous();
  const auto out_NM = at::empty({x_NK.size(0), outputs}, wide_NK.options());
  with_element(panels, [&](auto element) {
    Product<typename decltype(element)::type>(wide_NK, panels, out_NM).run();
  });
  return out_NM.to(x_NK.scalar_type());
}

}  // namespace retort::kernels::cpu
