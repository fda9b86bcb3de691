#include "retort/comm/worker_group.h"

#include <algorithm>

#include "retort/base/machine.h"
#include "retort/comm/flight.h"
#include "retort/comm/staged_call.h"

namespace retort::comm {

void WorkerGroup::at(std::int64_t step, std::string_view phase) {
  if (const auto& flight = worker_->flight()) flight->at(step, phase);
}

void WorkerGroup::note_failure(std::string_view sentence, bool by_another) noexcept {
  if (const auto& flight = worker_->flight()) flight->failed(sentence, by_another);
}

Handle WorkerGroup::start(const Collective& call) {
  const auto id = id_of(call, ++number_);
  const auto bytes = std::max(call.from.bytes(), call.to.bytes());
  const auto flight = worker_->flight();
  const auto place = flight ? flight->posted(id, level_) : 0;
  return worker_->post(
      [this, call, id, bytes, flight, place] {
        const double begin = base::monotonic_seconds();
        if (flight) flight->begun(place);
        moved_bytes_ = 0;
        const StagedCall staged(call, worker_->device_memory());
        carry_out(staged.call(), id);
        staged.finish();
        log_.ended(call.op, bytes, moved_bytes_, base::monotonic_seconds() - begin);
        if (flight) flight->ended(place);
      },
      [this, op = call.op, bytes](double seconds) { log_.waited(op, bytes, seconds); });
}

void WorkerGroup::carry_out(const Collective& call, const CallId& id) {
  enter(call, id);
  switch (call.op) {
    case Op::barrier:
      break;  // that was one
    case Op::all_gather:
      gather(call);
      break;
    case Op::reduce_scatter:
      reduce(call);
      break;
    case Op::all_reduce:
      sum_everywhere(call);
      break;
    case Op::broadcast:
      spread(call);
      break;
  }
  leave();
}

}  // namespace retort::comm
