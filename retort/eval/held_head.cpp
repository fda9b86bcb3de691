#include "retort/eval/held_head.h"

#include <ATen/core/Tensor.h>

namespace retort::eval {
namespace {

bool is_widened(at::ScalarType type) {
  return type != at::kFloat && type != at::kDouble;
}

}  // namespace

HeldHead::HeldHead(shard::Parameters& parameters, std::int64_t num_tokens)
    : HeldHead(parameters,
               std::make_shared<const shard::AcquiredUnit>(parameters, parameters.layout().head_unit()),
               num_tokens) {}

HeldHead::HeldHead(shard::Parameters& parameters, std::shared_ptr<const shard::AcquiredUnit> unit,
                   std::int64_t num_tokens)
    : HeadScorer(parameters.config(), parameters.layout(), unit->flat(), num_tokens), unit_(std::move(unit)) {
  if (is_widened(unit_->flat().scalar_type())) unit_.reset();
}

}  // namespace retort::eval
