#include "retort/ops/two_four.h"

#include "retort/base/error.h"
#include "retort/kernels/cpu/two_four.h"
#include "retort/kernels/cpu/two_four_layout.h"
#include "retort/ops/path.h"

namespace retort::ops {

bool packs_two_four(c10::Device device, at::ScalarType type) {
  return path_of(device) == Path::cpu && kernels::cpu::two_four_choices(type);
}

std::int64_t two_four_bytes(std::int64_t count, std::int64_t inputs, std::int64_t item_bytes) {
  return kernels::two_four_tiles(count) * kernels::two_four_tile_bytes(inputs, item_bytes);
}

TwoFourRows two_four_rows(const at::Tensor& w_MK, std::int64_t first, std::int64_t count) {
  base::ensure(packs_two_four(w_MK.device(), w_MK.scalar_type()) && w_MK.is_contiguous(),
               "packed weights are dense ones on a CPU with kernels for them");
  return {first, count,
          kernels::cpu::two_four_packed(w_MK.narrow(0, first, count),
                                        *kernels::cpu::two_four_choices(w_MK.scalar_type()))};
}

}  // namespace retort::ops
