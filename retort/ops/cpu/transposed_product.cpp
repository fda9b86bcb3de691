#include "retort/ops/cpu/transposed_product.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <vector>

#include "retort/ops/cpu/dispatch.h"
#include "retort/ops/cpu/matrix_unit.h"

namespace retort::ops::cpu {
namespace {

constexpr std::int64_t kRows = 64;  // of the sum that one task adds up
constexpr std::int64_t kInnerAtOnce =
    512;  // of the inputs that are transposed at once; both stay in the second cache
constexpr std::int64_t kLeastInner = 64, kColumnsAtOnce = 512;

bool dense_rows(const at::Tensor& x) {
  return x.size(1) < 2 || x.stride(1) == 1;
}

// b in pairs of rows, with zeros up to a whole step.
at::Tensor pairs_of(const at::Tensor& b_NK) {
  const auto inner = b_NK.size(0), columns = b_NK.size(1);
  auto pairs = at::empty({rounded_up_for_unit(inner) * columns}, b_NK.options());
  auto* const out = static_cast<std::uint32_t*>(pairs.mutable_data_ptr());
  at::parallel_for(0, rounded_up_for_unit(inner) / kUnitStep, 1, [&](std::int64_t begin, std::int64_t end) {
    for (auto step = begin; step < end; ++step) {
      const auto row = step * kUnitStep;
      unit_kernels().pairs_of_rows(data<Bf16>(b_NK) + row * b_NK.stride(0), b_NK.stride(0),
                                   std::min(kUnitStep, inner - row), columns, kUnitStep,
                                   out + row / 2 * columns);
    }
  });
  return pairs;
}

// One thread's memory, and its part of the sum.
class RowsOfSum {
 public:
  RowsOfSum(const at::Tensor& sum_MK, const at::Tensor& a_NM, const std::uint32_t* b_pairs)
      : sum_MK_(sum_MK),
        a_NM_(a_NM),
        b_pairs_(b_pairs),
        words_(static_cast<std::size_t>(kRows / 2 * kInnerAtOnce)),
        a_MN_(static_cast<std::size_t>(kRows * kInnerAtOnce)) {}
  ~RowsOfSum() { release_matrix_unit(); }
  RowsOfSum(const RowsOfSum&) = delete;
  RowsOfSum& operator=(const RowsOfSum&) = delete;

  void add(std::int64_t row) {
    const auto inner = a_NM_.size(0), rows = std::min(kRows, a_NM_.size(1) - row), columns = sum_MK_.size(1);
    for (std::int64_t begin = 0; begin < inner; begin += kInnerAtOnce) {
      const auto count = std::min(kInnerAtOnce, inner - begin), padded = rounded_up_for_unit(count);
      unit_kernels().pairs_of_columns(data<Bf16>(a_NM_) + begin * a_NM_.stride(0) + row, a_NM_.stride(0),
                                      count, rows, padded, kInnerAtOnce, words_.data());
      unit_kernels().unpaired(words_.data(), kInnerAtOnce, rows / 2, padded, a_MN_.data());
      for (std::int64_t column = 0; column < columns; column += kColumnsAtOnce)
        unit_product({a_MN_.data(), kInnerAtOnce, b_pairs_ + begin / 2 * columns + column, columns,
                      data<float>(sum_MK_) + row * columns + column, columns, rows, padded,
                      std::min(kColumnsAtOnce, columns - column), true});
    }
  }

 private:
  const at::Tensor &sum_MK_, &a_NM_;
  const std::uint32_t* b_pairs_;
  std::vector<std::uint32_t> words_;
  std::vector<Bf16> a_MN_;
};

}  // namespace

bool has_transposed_product(std::int64_t inner, std::int64_t rows, std::int64_t columns) {
  return has_amx() && inner >= kLeastInner && rows % 2 == 0 && columns % kUnitStep == 0;
}

bool suits_transposed_product(const at::Tensor& sum_MK, const at::Tensor& a_NM, const at::Tensor& b_NK) {
  return sum_MK.scalar_type() == at::kFloat && sum_MK.is_contiguous() && sum_MK.device().is_cpu() &&
         a_NM.scalar_type() == at::kBFloat16 && b_NK.scalar_type() == at::kBFloat16 && dense_rows(a_NM) &&
         dense_rows(b_NK) && has_transposed_product(a_NM.size(0), a_NM.size(1), b_NK.size(1));
}

void add_transposed_product(at::Tensor sum_MK, const at::Tensor& a_NM, const at::Tensor& b_NK) {
  const auto b_pairs = pairs_of(b_NK);
  const auto* const words = static_cast<const std::uint32_t*>(b_pairs.const_data_ptr());
  at::parallel_for(0, (a_NM.size(1) + kRows - 1) / kRows, 1, [&](std::int64_t begin, std::int64_t end) {
    RowsOfSum part(sum_MK, a_NM, words);
    for (auto block = begin; block < end; ++block) part.add(block * kRows);
  });
}

std::int64_t transposed_product_bytes(std::int64_t inner, std::int64_t columns) {
  return rounded_up_for_unit(inner) * columns * 2;
}

}  // namespace retort::ops::cpu
