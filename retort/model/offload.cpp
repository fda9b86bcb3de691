#include "retort/model/offload.h"

#include <ATen/ATen.h>

namespace retort::model {

at::Tensor Offload::copy_of(std::size_t unit, const at::Tensor& values) {
  auto& copy = unit == head_unit_ ? head_ : last_;
  auto& of = unit == head_unit_ ? head_of_ : last_of_;
  if (!copy.defined() || of != values.const_data_ptr()) {
    copy.reset();  // two at once would not be planned
    copy = values.to(device_);
    of = values.const_data_ptr();
  }
  return copy;
}

}  // namespace retort::model
