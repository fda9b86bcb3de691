#include "retort/kernels/cpu/matrix_vector.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <memory>
#include <new>
#include <vector>

#include "retort/kernels/cpu/dispatch.h"
#include "retort/kernels/cpu/team.h"

namespace retort::kernels::cpu {
namespace {

// Smaller ranges would make the processor begin to read ahead too often.
constexpr std::int64_t kLeastBytes = 1 << 14;

// Numbers at the start of a cache line, so that no vector lies across two.
template <typename C>
class Scratch {
 public:
  Scratch() = default;
  explicit Scratch(std::int64_t count)
      : data_(static_cast<C*>(::operator new(static_cast<std::size_t>(count) * sizeof(C), kLine))) {}
  C* data() const { return data_.get(); }

 private:
  static constexpr std::align_val_t kLine{64};
  struct Free {
    void operator()(C* memory) const { ::operator delete(memory, kLine); }
  };
  std::unique_ptr<C, Free> data_;
};

// Copies x in the type that is computed in.
template <typename C>
void widen(const at::Tensor& x, C* out) {
  if (x.scalar_type() == at::kBFloat16)
    std::copy_n(x.const_data_ptr<at::BFloat16>(), x.numel(), out);
  else
    std::copy_n(x.const_data_ptr<C>(), x.numel(), out);
}

// Rows of weights T times x: as they are, and packed by value.
template <typename T>
class ByValue {
 public:
  using C = typename ComputeOf<T>::type;

  ByValue(const at::Tensor& x_1K, bool packed) : inputs_(x_1K.size(1)) {
    constexpr bool as_it_is = std::is_same_v<T, C>;
    if (as_it_is && !packed) {
      x_ = x_1K.const_data_ptr<C>();
      return;
    }
    // Zeros up to the last group of the last piece.
    const auto padded = packed ? two_four_pieces(inputs_) * kTwoFourPieceInputs : inputs_;
    plain_ = Scratch<C>(padded);
    widen(x_1K, plain_.data());
    std::fill(plain_.data() + inputs_, plain_.data() + padded, C(0));
    x_ = plain_.data();
    if (as_it_is) return;
    arranged_ = Scratch<C>(inputs_);
    kernels<T>().arrange(plain_.data(), inputs_, arranged_.data());
    x_ = arranged_.data();
  }

  void rows(const T* w, std::int64_t count, C* y) const {
    kernels<T>().matrix_vector(w, x_, count, inputs_, y);
  }
  void tiles(const std::byte* tiles, std::int64_t count, C* y) const {
    kernels<T>().two_four({tiles, count, two_four_pieces(inputs_), plain_.data()}, y);
  }

 private:
  std::int64_t inputs_;
  Scratch<C> plain_, arranged_;
  const C* x_;  // in the order of the kernel for weights T
};

// The same by pairs of bfloat16.
class ByPair {
 public:
  ByPair(const at::Tensor& x_1K, bool packed) : inputs_(x_1K.size(1)), x_(data<Bf16>(x_1K)) {
    if (!packed) return;
    const auto groups = inputs_ / kTwoFourGroupInputs,
               padded = two_four_pieces(inputs_) * kTwoFourPieceGroups;
    pairs_ = Scratch<std::uint32_t>(kTwoFourPairSlots * padded);
    pair_kernels()->pairs_of_groups(x_, groups, pairs_.data());
    std::fill(pairs_.data() + kTwoFourPairSlots * groups, pairs_.data() + kTwoFourPairSlots * padded, 0);
  }

  void rows(const Bf16* w, std::int64_t count, float* y) const {
    pair_kernels()->matrix_vector(w, x_, count, inputs_, y);
  }
  void tiles(const std::byte* tiles, std::int64_t count, float* y) const {
    pair_kernels()->two_four({tiles, count, two_four_pieces(inputs_), pairs_.data()}, y);
  }

 private:
  std::int64_t inputs_;
  const Bf16* x_;
  Scratch<std::uint32_t> pairs_;
};

// Neighbouring rows of one kind, which are taken by the tile.
struct Run {
  std::int64_t first, count;
  const std::byte* packed;  // null: as they are
};

std::vector<Run> runs_of(std::int64_t rows, std::span<const TwoFourRows> packed) {
  std::vector<Run> runs;
  std::int64_t done = 0;
  for (const auto& part : packed) {
    if (part.first > done) runs.push_back({done, part.first - done, nullptr});
    runs.push_back({part.first, part.count, data<std::byte>(part.packed)});
    done = part.first + part.count;
  }
  if (rows > done) runs.push_back({done, rows - done, nullptr});
  return runs;
}

// y of tiles begin .. end of packed rows; the last tile may have rows that are none.
template <typename Products, typename C>
void multiply_tiles(const Run& run, std::int64_t tile_bytes, std::int64_t begin, std::int64_t end,
                    const Products& products, C* y_M) {
  C* const y = y_M + run.first;
  const auto whole = std::min(end, run.count / kTwoFourTileRows);
  products.tiles(run.packed + begin * tile_bytes, whole - begin, y + begin * kTwoFourTileRows);
  if (whole == end) return;
  std::array<C, kTwoFourTileRows> last;
  products.tiles(run.packed + whole * tile_bytes, 1, last.data());
  std::copy_n(last.data(), run.count - whole * kTwoFourTileRows, y + whole * kTwoFourTileRows);
}

// Ranges of rows, or of tiles where some are packed, which threads take in turn.
template <typename T, typename Products, typename C>
void multiply_rows(const at::Tensor& w_MK, std::span<const TwoFourRows> packed, const Products& products,
                   C* y_M) {
  const auto inputs = w_MK.size(1);
  const auto row_bytes = std::max<std::int64_t>(1, inputs * static_cast<std::int64_t>(sizeof(T)));
  const auto rows = [&](std::int64_t begin, std::int64_t end) {
    products.rows(data<T>(w_MK) + begin * inputs, end - begin, y_M + begin);
  };
  if (packed.empty())
    return for_ranges(w_MK.size(0), std::max<std::int64_t>(1, kLeastBytes / row_bytes), rows);
  const auto runs = runs_of(w_MK.size(0), packed);
  const auto tile_bytes = two_four_tile_bytes(inputs, sizeof(T));
  std::int64_t tiles = 0;
  for (const auto& run : runs) tiles += two_four_tiles(run.count);
  for_ranges(tiles, std::max<std::int64_t>(1, kLeastBytes / tile_bytes),
             [&](std::int64_t begin, std::int64_t end) {
               for (const auto& run : runs) {
                 const auto here = two_four_tiles(run.count);
                 const auto first = std::clamp<std::int64_t>(begin, 0, here);
                 const auto last = std::clamp<std::int64_t>(end, 0, here);
                 begin -= here;
                 end -= here;
                 if (first == last) continue;
                 if (run.packed)
                   multiply_tiles(run, tile_bytes, first, last, products, y_M);
                 else
                   rows(run.first + first * kTwoFourTileRows,
                        run.first + std::min(last * kTwoFourTileRows, run.count));
               }
             });
}

template <typename T, typename C>
void multiply(const at::Tensor& x_1K, const at::Tensor& w_MK, std::span<const TwoFourRows> packed, C* y_M) {
  if constexpr (std::is_same_v<T, Bf16>)
    if (pair_kernels() && x_1K.scalar_type() == at::kBFloat16)
      return multiply_rows<T>(w_MK, packed, ByPair(x_1K, !packed.empty()), y_M);
  multiply_rows<T>(w_MK, packed, ByValue<T>(x_1K, !packed.empty()), y_M);
}

}  // namespace

at::Tensor matrix_vector(const at::Tensor& x_1K, const at::Tensor& w_MK,
                         std::span<const TwoFourRows> packed) {
  const auto outputs = w_MK.size(0);
  auto y_1M = at::empty({1, outputs}, x_1K.options());
  with_element(w_MK, [&](auto element) {
    using T = typename decltype(element)::type;
    using C = typename ComputeOf<T>::type;
    if (x_1K.scalar_type() != at::kBFloat16)
      return multiply<T>(x_1K, w_MK, packed, y_1M.mutable_data_ptr<C>());
    const Scratch<C> y_M(outputs);
    multiply<T>(x_1K, w_MK, packed, y_M.data());
    std::copy_n(y_M.data(), outputs, y_1M.mutable_data_ptr<at::BFloat16>());
  });
  return y_1M;
}

}  // namespace retort::kernels::cpu
