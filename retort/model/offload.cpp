#include "retort/model/offload.h"

#include <ATen/ATen.h>

namespace retort::model {

at::Tensor Offload::copy_of(std::size_t unit, const at::Tensor& values) {
  if (unit == head_unit_) {
    if (!head_.defined()) head_ = values.to(device_);
    return head_;
  }
  if (last_unit_ != unit) {
    forget_blocks();  // two at once would not be planned
    last_ = values.to(device_);
    last_unit_ = unit;
  }
  return last_;
}

}  // namespace retort::model
