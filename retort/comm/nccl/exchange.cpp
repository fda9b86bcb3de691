#include "retort/comm/nccl/exchange.h"

#include <algorithm>
#include <chrono>

#include "retort/base/error.h"
#include "retort/base/machine.h"

namespace retort::comm::nccl {
namespace {

constexpr auto kLook = std::chrono::milliseconds(2);
// A rank that fails closes its connections while its sentence is on the way.
constexpr double kGraceOfSentence_seconds = 1;

// Bytes of each rank that are added at once: whole numbers of any type.
std::int64_t piece_of(std::int64_t all, int size) {
  const auto piece = std::max<std::int64_t>(8, kMostReceived_bytes / size / 8 * 8);
  return std::min(all, piece);
}

}  // namespace

Exchange::Exchange(std::shared_ptr<Accelerator> accelerator, std::shared_ptr<const Library> library)
    : accelerator_(std::move(accelerator)),
      library_(std::move(library)),
      thread_([this](const std::stop_token& stop) { watch(stop); }) {}

Exchange::~Exchange() {
  drain();
}

std::shared_ptr<Mark> Exchange::begin(const Collective& call, const Mark& ready,
                                      const std::shared_ptr<Communicator>& communicator, int size,
                                      Watched watched) {
  know(communicator);
  accelerator_->enter();
  accelerator_->wait(Stream::exchange, ready);
  const auto moving = std::make_shared<Moving>(Moving{.begin = accelerator_->mark(Stream::exchange),
                                                      .end = {},
                                                      .communicator = communicator,
                                                      .watched = std::move(watched)});
  {
    const std::scoped_lock lock(mutex_);
    moving_.push_back(moving);  // watched from now on: to give a call may take until it has moved
  }
  changed_.notify_all();
  try {
    give(call, *communicator, size);
  } catch (const std::exception& failure) {  // half of it may move, and would not end
    fail(failure.what());
    throw;
  }
  const auto end = accelerator_->mark(Stream::exchange);
  const std::scoped_lock lock(mutex_);
  return moving->end = end;
}

// A failure ends what moves in any of these.
void Exchange::know(const std::shared_ptr<Communicator>& communicator) {
  const std::scoped_lock lock(mutex_);
  if (!failed_.empty()) throw base::PeerError(failed_);
  std::erase_if(communicators_, [](const auto& known) { return known.expired(); });
  if (std::ranges::none_of(communicators_, [&](const auto& known) { return known.lock() == communicator; }))
    communicators_.push_back(communicator);
}

void Exchange::give(const Collective& call, Communicator& communicator, int size) {
  void* stream = accelerator_->exchange_handle();
  switch (call.op) {
    case Op::barrier:
      return;  // ranks that are at this call have met
    case Op::all_gather:
      return communicator.all_gather(call.from.data, call.to.data, call.from.bytes(), stream);
    case Op::broadcast:
      return communicator.broadcast(call.to.data, call.to.bytes(), call.root, stream);
    case Op::reduce_scatter:
    case Op::all_reduce:
      return add_received(call, communicator, size);
  }
}

// Everybody sends each rank its part and adds what comes.  What all want, all are sent, and all add.
void Exchange::add_received(const Collective& call, Communicator& communicator, int size) {
  void* stream = accelerator_->exchange_handle();
  const auto all = call.to.bytes(), piece = piece_of(all, size);
  const auto received = accelerator_->take(piece * size);
  const auto* from = static_cast<const std::byte*>(call.from.data);
  for (std::int64_t begin = 0; begin < all; begin += piece) {
    const auto bytes = std::min(piece, all - begin);
    if (call.op == Op::all_reduce)
      communicator.all_gather(from + begin, received.get(), bytes, stream);
    else
      communicator.all_to_all(from + begin, all, received.get(), bytes, stream);
    accelerator_->sum_rows(received.get(), size, bytes / size_of(call.to.type), call.to.type,
                           static_cast<std::byte*>(call.to.data) + begin);
  }
}

void Exchange::drain() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return moving_.empty(); });
}

std::string Exchange::failure() const {
  const std::scoped_lock lock(mutex_);
  return failed_;
}

void Exchange::require_sound() const {
  if (const auto reason = failure(); !reason.empty()) throw base::PeerError(reason);
}

void Exchange::watch(const std::stop_token& stop) {
  accelerator_->enter();
  for (;;) {
    std::shared_ptr<Moving> first;
    {
      std::unique_lock lock(mutex_);
      if (!changed_.wait(lock, stop, [this] { return !moving_.empty(); })) return;
      first = moving_.front();
    }
    while (!has_ended(*first)) std::this_thread::sleep_for(kLook);
    {
      const std::scoped_lock lock(mutex_);
      failed_.empty() ? moving_.pop_front() : moving_.clear();
    }
    changed_.notify_all();
  }
}

bool Exchange::has_ended(Moving& moving) {
  std::shared_ptr<Mark> end;
  {
    const std::scoped_lock lock(mutex_);
    if (!failed_.empty()) return true;
    end = moving.end;
  }
  try {
    if (!end || !end->reached()) {
      look_after(moving);
      return false;
    }
    moving.watched.ended(end->seconds_since(*moving.begin));
  } catch (const base::PeerError& failure) {
    fail(failure.what());
  } catch (const std::exception& failure) {  // of the accelerator: the others have not heard of it
    fail(failure.what());
    moving.watched.end_all(base::join(moving.watched.name, ": ", failure.what()));
  }
  return true;
}

// Throws where it will not end.
void Exchange::look_after(Moving& moving) const {
  if (!moving.has_begun) moving.waited = {};
  moving.has_begun = moving.begin->reached();
  moving.watched.look(moving.waited);
  const auto communicator = moving.communicator.lock();
  const auto error = communicator ? communicator->error() : std::string();
  if (error.empty()) return;
  if (moving.failing_since == 0) moving.failing_since = base::monotonic_seconds();
  if (base::monotonic_seconds() - moving.failing_since < kGraceOfSentence_seconds) return;
  moving.watched.end_all(base::join(moving.watched.name, ": NCCL says: ", error,
                                    "; start the same command again to go on from what is kept."));
}

// The computation may wait for what moves, so that has to end too.
void Exchange::fail(const std::string& sentence) {
  std::vector<std::shared_ptr<Communicator>> alive;
  {
    const std::scoped_lock lock(mutex_);
    if (failed_.empty()) failed_ = sentence;
    for (const auto& known : communicators_)
      if (auto communicator = known.lock()) alive.push_back(std::move(communicator));
  }
  for (const auto& communicator : alive) communicator->abort();
}

}  // namespace retort::comm::nccl
