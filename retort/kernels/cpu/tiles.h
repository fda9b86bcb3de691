#pragma once
// Rows of heads as dense matrices in a thread's own memory, in the type that is computed in.  For the .cpp
// files of kernels/cpu/ only.

#include <ATen/ATen.h>

#include <algorithm>
#include <vector>

#include "retort/kernels/cpu/dispatch.h"
#include "retort/kernels/cpu/tile_sizes.h"

namespace retort::kernels::cpu {

// Rows of one head: [length, head_dim], wherever each begins.
template <typename T>
struct Rows {
  T* first;
  std::int64_t stride, head_dim;

  Rows(const at::Tensor& x_NHE, std::int64_t begin, std::int64_t head)
      : first(data<T>(x_NHE) + begin * x_NHE.stride(0) + head * x_NHE.stride(1)),
        stride(x_NHE.stride(0)),
        head_dim(x_NHE.size(2)) {}
  T* row(std::int64_t n) const { return first + n * stride; }
};

inline void narrow(float x, Bf16& to) {
  to.bits = at::BFloat16(x).x;
}
template <typename C>
void narrow(C x, C& to) {
  to = x;
}

// A matrix with rows `stride` apart.
template <typename C>
struct Matrix {
  C* first;
  std::int64_t stride;
  C* row(std::int64_t n) const { return first + n * stride; }
};

template <typename T, typename C>
void load_rows(const Rows<T>& from, std::int64_t begin, std::int64_t rows, const Matrix<C>& to) {
  for (std::int64_t n = 0; n < rows; ++n) {
    const T* x = from.row(begin + n);
    C* y = to.row(n);
    for (std::int64_t i = 0; i < from.head_dim; ++i) y[i] = widened(x[i]);
    std::fill(y + from.head_dim, y + to.stride, C(0));
  }
}

template <typename C>
void transpose(const Matrix<C>& from, std::int64_t rows, std::int64_t columns, const Matrix<C>& to) {
  for (std::int64_t i = 0; i < columns; ++i) {
    for (std::int64_t n = 0; n < rows; ++n) to.row(i)[n] = from.row(n)[i];
    std::fill(to.row(i) + rows, to.row(i) + to.stride, C(0));
  }
}

template <typename T, typename C>
void store_rows(const Matrix<C>& from, std::int64_t rows, const Rows<T>& to, std::int64_t begin) {
  for (std::int64_t n = 0; n < rows; ++n)
    for (std::int64_t i = 0; i < to.head_dim; ++i) narrow(from.row(n)[i], to.row(begin + n)[i]);
}

inline std::int64_t longest_segment(const std::vector<std::int64_t>& starts) {
  std::int64_t longest = 0;
  for (std::size_t s = 1; s < starts.size(); ++s) longest = std::max(longest, starts[s] - starts[s - 1]);
  return longest;
}

// Deals out one piece of memory.
template <typename C>
class Room {
 public:
  explicit Room(const at::Tensor& memory) : next_(data<C>(memory)) {}
  Matrix<C> take(std::int64_t rows, std::int64_t stride) {
    const Matrix<C> matrix{next_, stride};
    next_ += rows * stride;
    return matrix;
  }

 private:
  C* next_;
};

}  // namespace retort::kernels::cpu
