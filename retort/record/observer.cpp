#include "retort/record/observer.h"

namespace retort::record {

void Observer::message(Level /*level*/, std::string_view /*text*/) {}
void Observer::step(const StepReport& /*report*/) {}
void Observer::progress(std::string_view /*what*/, std::int64_t /*done*/, std::int64_t /*total*/) {}
bool Observer::stop_requested() const {
  return false;
}

}  // namespace retort::record
