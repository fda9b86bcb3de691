#include "retort/kernels/cpu/packed_product.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string_view>
#include <vector>

#include "retort/kernels/cpu/amx_product.h"
#include "retort/kernels/cpu/dispatch.h"
#include "retort/kernels/cpu/ranges.h"

namespace retort::kernels::cpu {
namespace {

constexpr std::int64_t kInner = 256;          // words of a column of a and b at once
constexpr std::int64_t kBlockColumns = 1024;  // of the sum, of a task at most
constexpr std::int64_t kLeastPackedMultiplications = std::int64_t{1} << 21;

bool has_dense_rows(const at::Tensor& x, at::ScalarType type) {
  return x.device().is_cpu() && x.scalar_type() == type && x.dim() == 2 &&
         (x.size(1) < 2 || x.stride(1) == 1);
}

// The words that the tiles of a type are made of, how many rows of a matrix are in one, the sums that stay in
// registers, and those of a task at most.
template <typename T>
struct Packing;

template <>
struct Packing<float> {
  using Word = float;
  static constexpr std::int64_t kRows = 1, kTileRows = 6, kTileColumns = 64, kBlockRows = 288;

  // `count` words of the rows from `x` on, of which `rows` are there.
  static void pack(const float* x, std::int64_t /*x_row*/, std::int64_t /*rows*/, std::int64_t count,
                   float* out) {
    std::memcpy(out, x, static_cast<std::size_t>(count) * sizeof(float));
  }
  static void multiply(const float* a, const float* b, std::int64_t inner, std::int64_t rows, float* out,
                       std::int64_t out_row) {
    kernels<float>().small_product({.a = a,
                                    .a_row = 1,
                                    .a_column = kTileRows,
                                    .b = b,
                                    .b_row = kTileColumns,
                                    .out = out,
                                    .out_row = out_row,
                                    .rows = rows,
                                    .inner = inner,
                                    .columns = kTileColumns,
                                    .add = true});
  }
};

// Two rows make a row of pairs.
template <>
struct Packing<Bf16> {
  using Word = std::uint32_t;
  static constexpr std::int64_t kRows = 2, kTileRows = kPairRows, kTileColumns = kPairColumns,
                                kBlockRows = 576;

  static void pack(const Bf16* x, std::int64_t x_row, std::int64_t rows, std::int64_t count,
                   std::uint32_t* out) {
    if (rows < 2) {
      for (std::int64_t i = 0; i < count; ++i) out[i] = x[i].bits;
      return;
    }
    const auto* odd = x + x_row;
    for (std::int64_t i = 0; i < count; ++i) out[i] = x[i].bits | std::uint32_t{odd[i].bits} << 16;
  }
  static void multiply(const std::uint32_t* a, const std::uint32_t* b, std::int64_t inner, std::int64_t rows,
                       float* out, std::int64_t out_row) {
    static const auto product = pair_kernels()->product;
    product({.a = a, .b = b, .pairs = inner, .rows = rows, .out = out, .out_row = out_row});
  }
};

// One thread's copies: tiles of a as [tile, word, row], a tile of b as [word, column], and a tile of the sum
// at its edge.
template <typename T>
struct Copies {
  static constexpr auto kTileRows = Packing<T>::kTileRows, kTileColumns = Packing<T>::kTileColumns;
  std::vector<typename Packing<T>::Word> a, b;
  std::vector<float> edge;
  Copies()
      : a(static_cast<std::size_t>(Packing<T>::kBlockRows * kInner)),
        b(static_cast<std::size_t>(kInner * kTileColumns)),
        edge(static_cast<std::size_t>(kTileRows * kTileColumns)) {}
};

// Elements of the sum in these rows and columns.
template <typename T>
class PackedBlock {
  using Packed = Packing<T>;
  static constexpr auto kTileRows = Packed::kTileRows, kTileColumns = Packed::kTileColumns;

 public:
  PackedBlock(const at::Tensor& sum_MK, const at::Tensor& a_NM, const at::Tensor& b_NK, Copies<T>& copies)
      : sum_(data<float>(sum_MK)),
        a_(data<T>(a_NM)),
        b_(data<T>(b_NK)),
        sum_row_(sum_MK.stride(0)),
        a_row_(a_NM.stride(0)),
        b_row_(b_NK.stride(0)),
        inner_(a_NM.size(0)),
        copies_(copies) {}

  void add(Range rows, Range columns) {
    constexpr auto kStep = kInner * Packed::kRows;
    for (std::int64_t n = 0; n < inner_; n += kStep) {
      const Range inner{n, std::min(n + kStep, inner_)};
      copy_a(inner, rows);
      for (auto column = columns.begin; column < columns.end; column += kTileColumns)
        add_tiles(inner, rows, {column, std::min(column + kTileColumns, columns.end)});
    }
  }

 private:
  static std::int64_t words(Range inner) { return (inner.size() + Packed::kRows - 1) / Packed::kRows; }

  void copy_a(Range inner, Range rows) {
    auto* out = copies_.a.data();
    for (auto row = rows.begin; row < rows.end; row += kTileRows, out += kTileRows * kInner) {
      const auto count = std::min(kTileRows, rows.end - row);
      auto n = inner.begin;
      for (std::int64_t word = 0; word < words(inner); ++word, n += Packed::kRows)
        if (count == kTileRows)
          Packed::pack(a_ + n * a_row_ + row, a_row_, inner.end - n, kTileRows, out + word * kTileRows);
        else
          Packed::pack(a_ + n * a_row_ + row, a_row_, inner.end - n, count, out + word * kTileRows);
    }
  }

  // Zeros beyond the last column.
  void copy_b(Range inner, Range columns) {
    auto n = inner.begin;
    for (std::int64_t word = 0; word < words(inner); ++word, n += Packed::kRows) {
      auto* out = copies_.b.data() + word * kTileColumns;
      Packed::pack(b_ + n * b_row_ + columns.begin, b_row_, inner.end - n, columns.size(), out);
      std::fill(out + columns.size(), out + kTileColumns, typename Packed::Word{});
    }
  }

  void add_tiles(Range inner, Range rows, Range columns) {
    copy_b(inner, columns);
    const bool whole = columns.size() == kTileColumns;
    const auto* a = copies_.a.data();
    for (auto row = rows.begin; row < rows.end; row += kTileRows, a += kTileRows * kInner) {
      const auto count = std::min(kTileRows, rows.end - row);
      auto* const sum = sum_ + row * sum_row_ + columns.begin;
      if (!whole) copy_part(sum, sum_row_, copies_.edge.data(), kTileColumns, count, columns.size());
      Packed::multiply(a, copies_.b.data(), words(inner), count, whole ? sum : copies_.edge.data(),
                       whole ? sum_row_ : kTileColumns);
      if (!whole) copy_part(copies_.edge.data(), kTileColumns, sum, sum_row_, count, columns.size());
    }
  }

  float* sum_;
  T *a_, *b_;
  std::int64_t sum_row_, a_row_, b_row_, inner_;
  Copies<T>& copies_;
};

}  // namespace

bool suits_packed_product(const at::Tensor& sum_MK, const at::Tensor& a_NM, const at::Tensor& b_NK) {
#if defined(__x86_64__) || defined(_M_X64)
  static const bool gains = std::string_view(vector_tables().isa) == "avx512" && !__builtin_cpu_is("intel");
#else
  constexpr bool gains = false;
#endif
  const auto type = a_NM.scalar_type();
  const bool has_kernel = type == at::kFloat
                              ? gains && sum_MK.numel() * a_NM.size(0) >= kLeastPackedMultiplications
                              : type == at::kBFloat16 && packs_bf16(a_NM.size(0), a_NM.size(1), b_NK.size(1));
  return has_kernel && has_dense_rows(sum_MK, at::kFloat) && has_dense_rows(a_NM, type) &&
         has_dense_rows(b_NK, type);
}

bool packs_bf16(std::int64_t inner, std::int64_t rows, std::int64_t columns) {
  return pair_kernels() && !has_amx_product(inner, rows, columns) &&
         inner * rows * columns >= kLeastPackedMultiplications;
}

namespace {

// `upper`: without tiles that lie below the diagonal.  There are as many tasks for each thread.
template <typename T>
void add_blocks_of(const at::Tensor& sum_MK, const at::Tensor& a_NM, const at::Tensor& b_NK, bool upper) {
  constexpr auto kTileRows = Packing<T>::kTileRows, kTileColumns = Packing<T>::kTileColumns,
                 kBlockRows = Packing<T>::kBlockRows;
  const auto rows = sum_MK.size(0), columns = sum_MK.size(1), threads = std::int64_t{at::get_num_threads()};
  const auto across = ceil_div(columns, kBlockColumns);
  const auto step = threads / std::gcd(across, threads);
  const auto down = ceil_div(ceil_div(rows, kBlockRows), step) * step;
  const auto block_rows = part_size(rows, down, kTileRows);
  const auto block_columns = part_size(columns, across, kTileColumns);
  at::parallel_for(0, across * down, 1, [&](std::int64_t first, std::int64_t last) {
    thread_local Copies<T> copies;
    PackedBlock<T> block(sum_MK, a_NM, b_NK, copies);
    for (auto task = first; task < last; ++task) {
      const auto row = task / across * block_rows, column = task % across * block_columns;
      const Range of_rows{row, std::min(row + block_rows, rows)};
      Range of_columns{column, std::min(column + block_columns, columns)};
      if (upper) of_columns.begin = std::max(of_columns.begin, row / kTileColumns * kTileColumns);
      if (of_rows.size() > 0 && of_columns.size() > 0) block.add(of_rows, of_columns);
    }
  });
}

void add_blocks(const at::Tensor& sum_MK, const at::Tensor& a_NM, const at::Tensor& b_NK, bool upper) {
  if (a_NM.scalar_type() == at::kFloat)
    add_blocks_of<float>(sum_MK, a_NM, b_NK, upper);
  else
    add_blocks_of<Bf16>(sum_MK, a_NM, b_NK, upper);
}

}  // namespace

void add_packed_product(at::Tensor sum_MK, const at::Tensor& a_NM, const at::Tensor& b_NK) {
  add_blocks(sum_MK, a_NM, b_NK, /*upper=*/false);
}

void add_upper_product(at::Tensor sum_CC, const at::Tensor& x_NC) {
  if (suits_packed_product(sum_CC, x_NC, x_NC)) return add_blocks(sum_CC, x_NC, x_NC, /*upper=*/true);
  constexpr std::int64_t kColumns = 256;
  for (std::int64_t column = 0; column < sum_CC.size(1); column += kColumns) {
    const auto count = std::min(kColumns, sum_CC.size(1) - column);
    auto part = sum_CC.narrow(0, 0, column + count).narrow(1, column, count);
    part.addmm_(x_NC.narrow(1, 0, column + count).t(), x_NC.narrow(1, column, count));
  }
}

void mirror_upper(at::Tensor x_CC) {
  constexpr std::int64_t kSide = 32;  // of a square that is read along its rows before they leave the cache
  const auto size = x_CC.size(0), length = x_CC.stride(0);
  with_element(x_CC, [&](auto element) {
    auto* const x = data<typename decltype(element)::type>(x_CC);
    at::parallel_for(0, (size + kSide - 1) / kSide, 1, [&](std::int64_t first, std::int64_t last) {
      for (auto begin = first * kSide; begin < std::min(last * kSide, size); begin += kSide)
        for (std::int64_t column = 0; column < std::min(begin + kSide, size); column += kSide)
          for (auto row = begin; row < std::min(begin + kSide, size); ++row)
            for (auto c = column; c < std::min(column + kSide, row); ++c)
              x[row * length + c] = x[c * length + row];
    });
  });
}

}  // namespace retort::kernels::cpu
