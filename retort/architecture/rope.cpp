#include "retort/architecture/rope.h"

#include <cmath>

namespace retort::architecture {
namespace {

using Kind = Rope::Kind;

double yarn_factor(double factor, double scale) {
  return factor <= 1 ? 1 : 0.1 * scale * std::log(factor) + 1;
}

}  // namespace

double rope_factor(const Rope& rope) {
  if (rope.attention_factor) return *rope.attention_factor;
  if (rope.kind == Kind::yarn)
    return rope.mscale.value_or(0) != 0 && rope.mscale_all_dim.value_or(0) != 0
               ? yarn_factor(rope.factor, *rope.mscale) / yarn_factor(rope.factor, *rope.mscale_all_dim)
               : yarn_factor(rope.factor, 1);
  if (rope.kind != Kind::longrope || rope.factor <= 1) return 1;
  return std::sqrt(1 + std::log(rope.factor) / std::log(static_cast<double>(rope.original_context)));
}

}  // namespace retort::architecture
