#include "retort/comm/job.h"

#include <utility>

#include "retort/base/error.h"
#include "retort/comm/accelerator.h"
#include "retort/comm/flight.h"
#include "retort/comm/nccl/exchange.h"

namespace retort::comm {
namespace {

class LoneJob final : public Job {
 public:
  void abort(const std::string&) noexcept override {}  // nobody else is there to be ended
  bool abort_is_heard() const override { return true; }
  bool claim_last_words() noexcept override { return true; }
};

}  // namespace

Job::Job() = default;
Job::~Job() = default;

void Job::record(std::shared_ptr<Flight> flight) {
  flight_ = std::move(flight);
}

void Job::at(std::int64_t step, std::string_view phase) {
  if (flight_) flight_->at(step, phase);
}

void Job::note_failure(std::string_view sentence, bool by_another) noexcept {
  if (flight_) flight_->failed(sentence, by_another);
}

void Job::note_recovery() noexcept {
  if (flight_) flight_->recovered();
}

std::string Job::place(int rank) const {
  if (flight_)
    if (const auto record = flight_of(flight_->directory(), flight_->rank()))
      return base::join(described(*record), " ", last_place(*record));
  return base::join("rank ", rank);
}

void Job::set_accelerator(std::shared_ptr<Accelerator> accelerator,
                          std::shared_ptr<const nccl::Library> library) {
  exchange_ = library ? std::make_shared<nccl::Exchange>(accelerator, std::move(library)) : nullptr;
  accelerator_ = std::move(accelerator);
}

std::shared_ptr<Job> lone_job() {
  return std::make_shared<LoneJob>();
}

}  // namespace retort::comm
