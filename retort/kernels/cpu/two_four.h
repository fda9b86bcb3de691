#pragma once
// 2:4 weights packed for a CPU; matrix_vector.h multiplies them.

#include <ATen/core/Tensor.h>

#include <optional>

namespace retort::kernels::cpu {

/// How packed rows tell where their weights stood (two_four_layout.h).
enum class Choices { by_value, by_pair };

/// What the kernels of this processor take for weights of a type; none where they have none.
std::optional<Choices> two_four_choices(at::ScalarType type);

/// Packs dense rows of bfloat16 or float32; undefined unless all of them are 2:4, in whole groups of four.
at::Tensor two_four_packed(const at::Tensor& w_RK, Choices choices);

}  // namespace retort::kernels::cpu
