#pragma once
// The dispatch of an operation, and what it asks of its arguments.  For the .cpp files of ops/ only.

#include <ATen/core/Tensor.h>

#include "retort/base/error.h"
#include "retort/kernels/tables.h"
#include "retort/ops/path.h"

namespace retort::ops {

using kernels::statistics_type;

/// The one for the path of x.  No kernel for CUDA takes float64, or a tensor without elements.
template <typename Body>
const Body& choose(const at::Tensor& x, const kernels::PerPath<Body>& of) {
  const auto path = path_of(x.device());
  if (path == Path::cpu) return of.cpu;
  return path == Path::cuda && x.scalar_type() != at::kDouble && x.numel() > 0 ? of.cuda : of.device;
}

/// Throws InternalError unless `others` are dense, as x is, and of its type and device.
template <typename... Tensors>
void ensure_alike(const char* what, const at::Tensor& x, const Tensors&... others) {
  base::ensure(x.is_contiguous() && (others.is_contiguous() && ...), what);
  base::ensure(((others.scalar_type() == x.scalar_type() && others.device() == x.device()) && ...), what);
}

/// The same of matrices whose rows are dense, wherever each row begins.
template <typename... Tensors>
void ensure_alike_rows(const char* what, const at::Tensor& x, const Tensors&... others) {
  const auto dense = [](const at::Tensor& matrix) { return matrix.size(1) < 2 || matrix.stride(1) == 1; };
  base::ensure(dense(x) && (dense(others) && ...), what);
  base::ensure(((others.scalar_type() == x.scalar_type() && others.device() == x.device()) && ...), what);
}

}  // namespace retort::ops
