#include "retort/kernels/cpu/amx_product.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include "retort/base/error.h"
#include "retort/kernels/cpu/amx_kernels.h"
#include "retort/kernels/cpu/dispatch.h"
#include "retort/kernels/cpu/ranges.h"

namespace retort::kernels::cpu {
namespace {

// Below them, packing takes longer than it saves.
constexpr std::int64_t kLeastAmxMultiplications = std::int64_t{1} << 21, kLeastLines = 64;

// Packed columns stay in the second cache, beside some rows and what passes through.
constexpr std::int64_t kColumnBytes = 1250 << 10;
// Of inner elements at once: more of them are fewer visits to the sums, fewer let more columns stay.
constexpr std::int64_t kLeastInner = 320, kMostInner = 640;
// Rows that are packed at once.  Where these lie across memory, neighbours use a line of the cache together.
constexpr std::int64_t kRowsAlong = 32, kRowsAcross = 128;
// Sums of more pieces of float32 are added in groups, of so many rows at once: then no sum has many
// additions.
constexpr std::int64_t kMostPieces = 8, kSumRows = 1024;

// How many inner elements and columns are packed at once, and how many inner elements a group has.  It
// depends on the sizes alone, for the order of sums not to depend on the number of threads.
class AmxPieces {
 public:
  std::int64_t inner, columns, group;

  AmxPieces(std::int64_t all_inner, std::int64_t all_columns, std::int64_t parts) {
    divide(all_inner, all_columns, parts * std::int64_t{sizeof(Bf16)});
    const auto count = ceil_div(all_inner, inner);
    std::int64_t in_group = 1;
    while (in_group * in_group < count) ++in_group;
    group = count > kMostPieces && parts > 1 ? in_group * inner : all_inner;
  }

 private:
  void divide(std::int64_t all_inner, std::int64_t all_columns, std::int64_t bytes_of_element) {
    const auto least_count = ceil_div(all_inner, kMostInner);
    const auto set = [&](std::int64_t count) {
      inner = part_size(all_inner, count, kAmxInner);
      columns = std::max(kAmxLines, kColumnBytes / (inner * bytes_of_element) / kAmxLines * kAmxLines);
    };
    for (auto count = least_count; ceil_div(all_inner, count) >= kLeastInner; ++count) {
      set(count);
      if (columns >= all_columns) return;
    }
    set(least_count);
  }
};

// Words of a register.
struct alignas(64) AmxRegister {
  std::array<std::uint32_t, 256> words;
};

// One thread's memory.
struct AmxPacked {
  std::vector<AmxRegister> rows, columns;
  std::vector<float> sums;                        // of a group of pieces
  alignas(64) float edge[kAmxLines * kAmxLines];  // 32 by 32 sums, of which some lie beyond the result

  static std::uint32_t* reserve(std::vector<AmxRegister>& squares, std::int64_t words) {
    const auto count = static_cast<std::size_t>(ceil_div(words, AmxRegister{}.words.size()));
    if (squares.size() < count) squares.resize(count);
    return squares.front().words.data();
  }
};

AmxPacked& packed_of_thread() {
  thread_local AmxPacked packed;
  return packed;
}

template <typename T>
const AmxTypeKernels<T>& amx_kernels_of(const AmxKernels& by) {
  if constexpr (std::is_same_v<T, float>)
    return by.f32;
  else
    return by.bf16;
}

// A matrix of sums whose first element is that of this row and column.
struct AmxSums {
  float* first;
  std::int64_t row_step, row, column;
  float* at(std::int64_t r, std::int64_t c) const { return first + (r - row) * row_step + (c - column); }
};

// Elements of the result in some rows and columns.
template <typename T>
class AmxBlock {
 public:
  AmxBlock(const AmxKernels& by, const at::Tensor& out_NM, const at::Tensor& a_NK, const at::Tensor& b_KM,
           AmxResult result)
      : by_(by),
        kernels_(amx_kernels_of<T>(by)),
        out_{data<float>(out_NM), out_NM.stride(0), 0, 0},
        a_{data<T>(a_NK), a_NK.stride(0), a_NK.stride(1)},
        b_{data<T>(b_KM), b_KM.stride(1), b_KM.stride(0)},
        inner_(a_NK.size(1)),
        pieces_(inner_, b_KM.size(1), kernels_.parts),
        add_(result != AmxResult::assigned),
        upper_(result == AmxResult::added_above_the_diagonal) {
    by_.configure();
  }
  ~AmxBlock() { by_.release(); }
  AmxBlock(const AmxBlock&) = delete;
  AmxBlock& operator=(const AmxBlock&) = delete;

  void compute(Range rows, Range columns) {
    const auto across = ceil_div(columns.size(), pieces_.columns);
    const auto step = part_size(columns.size(), across, kAmxLines);
    for (auto column = columns.begin; column < columns.end; column += step) {
      const Range some{column, std::min(column + step, columns.end)};
      if (pieces_.group >= inner_)
        group(rows, some, {0, inner_}, out_, add_);
      else
        groups(rows, some);
    }
  }

 private:
  // Each group is summed beside the result.
  void groups(Range rows, Range columns) {
    const auto step = part_size(rows.size(), ceil_div(rows.size(), kSumRows), kAmxLines);
    packed_.sums.resize(std::max(packed_.sums.size(), static_cast<std::size_t>(step * columns.size())));
    for (auto row = rows.begin; row < rows.end; row += step) {
      const Range some{row, std::min(row + step, rows.end)};
      const AmxSums sums{packed_.sums.data(), columns.size(), row, columns.begin};
      for (std::int64_t n = 0; n < inner_; n += pieces_.group) {
        group(some, columns, {n, std::min(n + pieces_.group, inner_)}, sums, /*add=*/false);
        take(sums, some, columns, add_ || n > 0);
      }
    }
  }

  void take(const AmxSums& sums, Range rows, Range columns, bool add) const {
    for (auto row = rows.begin; row < rows.end; ++row) {
      const auto column = upper_ ? std::max(columns.begin, row) : columns.begin;
      const float* from = sums.at(row, column);
      auto* const to = out_.at(row, column);
      for (std::int64_t i = 0; i < columns.end - column; ++i) to[i] = add ? to[i] + from[i] : from[i];
    }
  }

  void group(Range rows, Range columns, Range inner, const AmxSums& out, bool add) {
    for (auto n = inner.begin; n < inner.end; n += pieces_.inner)
      piece(rows, columns, {n, std::min(n + pieces_.inner, inner.end)}, out, add || n > inner.begin);
  }

  std::int64_t words(std::int64_t lines, Range inner) const {
    return kernels_.parts * amx_words(lines, inner.size());
  }

  // Whether one part holds them.
  bool pack(const AmxOperand<T>& of, Range lines, Range inner, bool columns, std::uint32_t* out) const {
    return kernels_.pack(
        {of.x + lines.begin * of.line_step + inner.begin * of.inner_step, of.line_step, of.inner_step},
        lines.size(), inner.size(), columns, out);
  }

  void piece(Range rows, Range columns, Range inner, const AmxSums& out, bool add) {
    auto* const b = AmxPacked::reserve(packed_.columns, words(columns.size(), inner));
    const bool b_in_one_part = pack(b_, columns, inner, /*columns=*/true, b);
    const auto at_once = a_.inner_step == 1 ? kRowsAlong : kRowsAcross;
    for (auto row = rows.begin; row < rows.end; row += at_once) {
      const Range some{row, std::min(row + at_once, rows.end)};
      auto* const a = AmxPacked::reserve(packed_.rows, words(some.size(), inner));
      (void)pack(a_, some, inner, /*columns=*/false, a);  // weights are b; other operands need all parts
      for (auto top = some.begin; top < some.end; top += kAmxLines)
        for (auto left = columns.begin; left < columns.end; left += kAmxLines) {
          if (upper_ && left + kAmxLines <= top) continue;
          panels({top, std::min(top + kAmxLines, some.end)}, {left, std::min(left + kAmxLines, columns.end)},
                 {.a = a + words(top - some.begin, inner),
                  .b = b + words(left - columns.begin, inner),
                  .b_in_one_part = b_in_one_part,
                  .steps = amx_padded(inner.size()) / kAmxInner,
                  .out = out.at(top, left),
                  .out_row = out.row_step,
                  .add = add});
        }
    }
  }

  // The product of two panels; at an edge it is computed beside the result.
  void panels(Range rows, Range columns, AmxProduct product) {
    if (rows.size() == kAmxLines && columns.size() == kAmxLines) return kernels_.multiply(product);
    auto* const out = product.out;
    const auto out_row = product.out_row;
    product.out = packed_.edge;
    product.out_row = kAmxLines;
    if (product.add) copy_part(out, out_row, packed_.edge, kAmxLines, rows.size(), columns.size());
    kernels_.multiply(product);
    copy_part(packed_.edge, kAmxLines, out, out_row, rows.size(), columns.size());
  }

  const AmxKernels& by_;
  const AmxTypeKernels<T>& kernels_;
  AmxSums out_;
  AmxOperand<T> a_, b_;
  std::int64_t inner_;
  AmxPieces pieces_;
  bool add_, upper_;
  AmxPacked& packed_ = packed_of_thread();
};

// How many threads share the rows, and how many the columns: what a thread packs is as little as it can be.
struct AmxGrid {
  std::int64_t down = 1, across = 1;

  AmxGrid(std::int64_t rows, std::int64_t columns, std::int64_t threads, bool upper) {
    if (upper) {
      down = threads;
      return;
    }
    auto least = std::numeric_limits<std::int64_t>::max();
    for (std::int64_t d = 1; d <= threads; ++d)
      if (const auto lines = part_size(rows, d, kAmxLines) + part_size(columns, threads / d, kAmxLines);
          threads % d == 0 && lines < least) {
        least = lines;
        down = d;
        across = threads / d;
      }
  }
};

Range lines_of(std::int64_t size, std::int64_t count, std::int64_t index) {
  const auto step = part_size(size, count, kAmxLines);
  return {std::min(index * step, size), std::min((index + 1) * step, size)};
}

template <typename T>
void amx_product_of(const AmxKernels& by, const at::Tensor& out_NM, const at::Tensor& a_NK,
                    const at::Tensor& b_KM, AmxResult result) {
  const bool upper = result == AmxResult::added_above_the_diagonal;
  const auto rows = out_NM.size(0), columns = out_NM.size(1);
  const AmxGrid grid(rows, columns, at::get_num_threads(), upper);
  at::parallel_for(0, grid.down * grid.across, 1, [&](std::int64_t first, std::int64_t last) {
    AmxBlock<T> block(by, out_NM, a_NK, b_KM, result);
    const auto compute = [&](Range some, Range of_columns) {
      if (upper) of_columns.begin = some.begin;
      if (some.size() > 0 && of_columns.size() > 0) block.compute(some, of_columns);
    };
    for (auto task = first; task < last; ++task) {
      const auto down = task / grid.across;
      const auto of_columns = lines_of(columns, grid.across, task % grid.across);
      if (!upper) {
        compute(lines_of(rows, grid.down, down), of_columns);
        continue;
      }
      // An early part, whose rows are long, and a late one.
      compute(lines_of(rows, 2 * grid.down, down), of_columns);
      compute(lines_of(rows, 2 * grid.down, 2 * grid.down - 1 - down), of_columns);
    }
  });
}

bool has_dense_lines(const at::Tensor& x) {
  return x.device().is_cpu() && x.dim() == 2 && (x.stride(1) == 1 || x.stride(0) == 1);
}

}  // namespace

bool has_amx_product(std::int64_t inner, std::int64_t rows, std::int64_t columns) {
  return amx_kernels() && std::min(rows, columns) >= kLeastLines &&
         inner * rows * columns >= kLeastAmxMultiplications;
}

bool suits_amx_product(const at::Tensor& a_NK, const at::Tensor& b_KM) {
  const auto type = a_NK.scalar_type();
  return (type == at::kFloat || type == at::kBFloat16) && b_KM.scalar_type() == type &&
         has_dense_lines(a_NK) && has_dense_lines(b_KM) &&
         has_amx_product(a_NK.size(1), a_NK.size(0), b_KM.size(1));
}

bool suits_amx_sum(const at::Tensor& sum_NM, const at::Tensor& a_NK, const at::Tensor& b_KM) {
  return sum_NM.scalar_type() == at::kFloat && has_dense_lines(sum_NM) && sum_NM.stride(1) == 1 &&
         suits_amx_product(a_NK, b_KM);
}

void amx_product(const at::Tensor& out_NM, const at::Tensor& a_NK, const at::Tensor& b_KM, AmxResult result) {
  amx_product(*amx_kernels(), out_NM, a_NK, b_KM, result);
}

void amx_product(const AmxKernels& by, const at::Tensor& out_NM, const at::Tensor& a_NK,
                 const at::Tensor& b_KM, AmxResult result) {
  base::ensure(a_NK.size(1) > 0 && a_NK.size(1) == b_KM.size(0) && out_NM.size(0) == a_NK.size(0) &&
                   out_NM.size(1) == b_KM.size(1),
               "a product of matrices takes operands that fit each other and its result");
  if (a_NK.scalar_type() == at::kFloat)
    amx_product_of<float>(by, out_NM, a_NK, b_KM, result);
  else
    amx_product_of<Bf16>(by, out_NM, a_NK, b_KM, result);
}

}  // namespace retort::kernels::cpu
