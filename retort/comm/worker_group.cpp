#include "retort/comm/worker_group.h"

#include <algorithm>

#include "retort/base/error.h"
#include "retort/base/machine.h"
#include "retort/comm/accelerator.h"
#include "retort/comm/flight.h"
#include "retort/comm/nccl/exchange.h"
#include "retort/comm/staged_call.h"

namespace retort::comm {

Handle WorkerGroup::start(const Collective& call) {
  const auto id = id_of(call, ++number_);
  const auto flight = job_->flight();
  const Noted noted{.id = id,
                    .op = call.op,
                    .bytes = std::max(call.from.bytes(), call.to.bytes()),
                    .place = flight ? flight->posted(id, level_) : 0,
                    .flight = flight};
  return job_->exchange() && on_accelerator(call) ? start_on_accelerator(call, noted)
                                                  : start_here(call, noted);
}

Handle WorkerGroup::start_here(const Collective& call, const Noted& noted) {
  return worker_->post(
      [this, call, noted] {
        const double begin = base::monotonic_seconds();
        if (noted.flight) noted.flight->begun(noted.place);
        moved_bytes_ = 0;
        const StagedCall staged(call, job_->accelerator());
        carry_out(staged.call(), noted.id);
        staged.finish();
        log_.ended(noted.op, noted.bytes, moved_bytes_, base::monotonic_seconds() - begin);
        if (noted.flight) noted.flight->ended(noted.place);
      },
      [this, noted](double seconds) { log_.waited(noted.op, noted.bytes, seconds); });
}

namespace {

// A call that was given to an accelerator, or soon will be.
class OnAccelerator final : public Pending {
 public:
  explicit OnAccelerator(nccl::Exchange& exchange) : exchange_(exchange) {}
  void wait() override {
    auto& accelerator = exchange_.accelerator();
    auto from = accelerator.mark(Stream::computation);  // it may run dry until the call was given
    given.wait();
    if (end) {
      accelerator.wait(Stream::computation, *end);
      waits(std::move(from), accelerator.mark(Stream::computation));
    }
    exchange_.require_sound();
  }
  Handle given;
  std::shared_ptr<Mark> end;  // set when it was given
  std::function<void(std::shared_ptr<Mark> from, std::shared_ptr<Mark> to)> waits;

 private:
  nccl::Exchange& exchange_;
};

}  // namespace

// The worker's thread meets the others and gives the call to the accelerator; it does not see it move.
Handle WorkerGroup::start_on_accelerator(const Collective& call, const Noted& noted) {
  const auto pending = std::make_shared<OnAccelerator>(*job_->exchange());
  pending->waits = [this, noted](std::shared_ptr<Mark> from, std::shared_ptr<Mark> to) {
    log_.waits(noted.op, noted.bytes, std::move(from), std::move(to));
  };
  pending->given = worker_->post([this, call, noted, pending = std::weak_ptr(pending),
                                  ready = job_->accelerator()->mark(Stream::computation)] {
    const auto end = give_to_accelerator(call, noted, *ready);
    if (const auto waiting = pending.lock()) waiting->end = end;
  });
  return Handle(pending);
}

std::shared_ptr<Mark> WorkerGroup::give_to_accelerator(const Collective& call, const Noted& noted,
                                                       const Mark& ready) {
  if (noted.flight) noted.flight->begun(noted.place);
  enter(call, noted.id);
  const double times = call.patient ? kPatientTimes : 1;
  nccl::Watched watched{.look = [this, noted, times](Waited& waited) { look(noted.id, waited, times); },
                        .ended =
                            [this, noted](double seconds) {
                              log_.ended(noted.op, noted.bytes, 0, seconds);
                              if (noted.flight) noted.flight->ended(noted.place);
                            },
                        .name = base::join(described(noted.id), " of '", level_, "'"),
                        .end_all = [this](const std::string& sentence) { end_all(sentence); }};
  std::shared_ptr<Mark> end;
  try {
    end = job_->exchange()->begin(call, ready, communicator(noted.id), size(), std::move(watched));
  } catch (const std::exception& error) {  // the others would wait for what this rank did not begin
    if (const auto before = job_->exchange()->failure(); !before.empty() && before != error.what())
      throw base::PeerError(before);
    const auto sentence = base::join(described(noted.id), " of '", level_, "': ", error.what());
    end_all(sentence);
    throw base::PeerError(sentence);
  }
  log_.ended(noted.op, noted.bytes, moved_by(call, rank(), size()), 0);
  leave();
  return end;
}

// Made at the group's first call on an accelerator, at which all of its ranks are.
const std::shared_ptr<nccl::Communicator>& WorkerGroup::communicator(const CallId& id) {
  if (communicator_) return communicator_;
  const auto& library = job_->exchange()->library();
  nccl::UniqueId name;
  if (rank() == 0) base::ensure(library->call.ncclGetUniqueId(&name) == nccl::kSuccess, "NCCL names a group");
  const Buffer bytes{&name, sizeof name};
  spread({Op::broadcast, bytes, bytes, 0, false});
  job_->accelerator()->enter();
  communicator_ = std::make_shared<nccl::Communicator>(
      library, name, rank(), size(), [this, id](Waited& waited) { look(id, waited, kPatientTimes); });
  return communicator_;
}

void WorkerGroup::close_exchange() {
  if (!communicator_) return;
  job_->exchange()->drain();
  communicator_.reset();
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
