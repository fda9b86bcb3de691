#include "retort/comm/staged_call.h"

#include "retort/base/error.h"

namespace retort::comm {
namespace {

bool on_accelerator(const ConstBuffer& buffer) {
  return buffer.device == Device::accelerator && buffer.count > 0;
}

}  // namespace

bool on_accelerator(const Collective& call) {
  return on_accelerator(call.from) || on_accelerator(call.to);
}

StagedCall::StagedCall(const Collective& call, Accelerator* accelerator)
    : original_(call), accelerator_(accelerator), staged_(call) {
  const bool from = on_accelerator(call.from), to = on_accelerator(ConstBuffer(call.to));
  base::ensure((!from && !to) || accelerator, "a group was given memory that nobody knows how to copy");
  if (from) {
    from_.resize(static_cast<std::size_t>(call.from.bytes()));
    accelerator->to_host(from_.data(), call.from.data, call.from.bytes());
    staged_.from = {from_.data(), call.from.count, call.from.type};
  }
  if (!to) return;
  const bool in_place = from && call.to.data == call.from.data && call.to.count == call.from.count;
  if (!in_place) to_.resize(static_cast<std::size_t>(call.to.bytes()));
  staged_.to = {in_place ? from_.data() : to_.data(), call.to.count, call.to.type};
}

void StagedCall::finish() const {
  if (on_accelerator(ConstBuffer(original_.to)))
    accelerator_->to_device(original_.to.data, staged_.to.data, original_.to.bytes());
}

}  // namespace retort::comm
