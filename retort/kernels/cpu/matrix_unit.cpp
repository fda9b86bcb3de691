#include "retort/kernels/cpu/matrix_unit.h"

#include <ATen/native/CPUBlas.h>

#include <array>
#include <exception>

namespace retort::kernels::cpu {
namespace {

// libtorch does not say whether it can use such vectors, so one product is tried.
bool has_vectors_of_pairs() {
#if defined(__x86_64__) || defined(_M_X64)
  if (!__builtin_cpu_supports("avx512bf16")) return false;
  const std::array<Bf16, 4> a{};
  const std::array<std::uint32_t, 4> b{};
  std::array<float, 4> out{};
  try {
    unit_product({a.data(), 2, b.data(), 2, out.data(), 2, 2, 2, 2, false});
  } catch (const std::exception&) {
    return false;
  }
  release_matrix_unit();
  return true;
#else
  return false;
#endif
}

}  // namespace

bool suits_matrix_unit(std::int64_t head_dim) {
  static const bool has_amx = at::native::cpublas::could_pack(at::kBFloat16),
                    has = has_amx || has_vectors_of_pairs();
  return has && head_dim % kUnitStep == 0;
}

void unit_product(const UnitProduct& p) {
  at::native::cpublas::brgemm(p.rows, p.columns, p.inner, p.a_row, p.b_row, p.out_row, p.add,
                              reinterpret_cast<const at::BFloat16*>(p.a),
                              reinterpret_cast<const at::BFloat16*>(p.b), p.out);
}

void release_matrix_unit() {
  at::native::cpublas::brgemm_release();
}

}  // namespace retort::kernels::cpu
