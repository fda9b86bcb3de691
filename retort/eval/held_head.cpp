#include "retort/eval/held_head.h"

#include <ATen/core/Tensor.h>

namespace retort::eval {
namespace {

bool is_widened(at::ScalarType type) {
  return type != at::kFloat && type != at::kDouble;
}

}  // namespace

HeldHead::HeldHead(shard::Parameters& parameters, std::int64_t num_tokens, HeadMatrix matrix)
    : HeldHead(parameters,
               std::make_shared<const shard::AcquiredUnit>(parameters, parameters.layout().head_unit()),
               num_tokens, matrix) {}

HeldHead::HeldHead(shard::Parameters& parameters, std::shared_ptr<const shard::AcquiredUnit> unit,
                   std::int64_t num_tokens, HeadMatrix matrix)
    : HeadScorer(parameters.config(), parameters.layout(), unit->flat(), num_tokens, matrix),
      unit_(std::move(unit)) {
  if (matrix == HeadMatrix::widened && is_widened(unit_->flat().scalar_type())) unit_.reset();
}

}  // namespace retort::eval
