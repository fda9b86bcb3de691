#include "retort/ops/cpu/matrix_unit.h"

#include <ATen/native/CPUBlas.h>

namespace retort::ops::cpu {

bool has_matrix_unit() {
  static const bool has = at::native::cpublas::could_pack(at::kBFloat16);
  return has;
}

bool suits_matrix_unit(std::int64_t head_dim) {
  return head_dim % kUnitStep == 0 && has_matrix_unit();
}

void unit_product(const UnitProduct& p) {
  at::native::cpublas::brgemm(p.rows, p.columns, p.inner, p.a_row, p.b_row, p.out_row, p.add,
                              reinterpret_cast<const at::BFloat16*>(p.a),
                              reinterpret_cast<const at::BFloat16*>(p.b), p.out);
}

void release_matrix_unit() {
  at::native::cpublas::brgemm_release();
}

}  // namespace retort::ops::cpu
