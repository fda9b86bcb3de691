#include "retort/prune/size.h"

#include <cmath>
#include <iomanip>
#include <optional>

#include "retort/architecture/counts.h"
#include "retort/architecture/hf_config.h"
#include "retort/base/error.h"
#include "retort/base/hash.h"
#include "retort/base/units.h"
#include "retort/comm/lead.h"
#include "retort/model/dtype.h"
#include "retort/ops/threads.h"
#include "retort/prune/target.h"
#include "retort/record/scratch.h"
#include "retort/record/stopped.h"

namespace retort::prune {
namespace {

// Fine enough for parts of deep models, and sums of it can be listed (search::reach).
constexpr double kSteps = 1 << 19;

std::int64_t steps(double seconds, double step_seconds) {
  return std::llround(seconds / step_seconds);
}

// What the times depend on, but for the machine.
std::string identity_of(const architecture::Config& input, const eval::TokenTimeOptions& options) {
  const auto text = base::join(architecture::hf_config_json(input), options.batch, " ", options.context, " ",
                               model::dtype_name(options.dtype), " ", options.device.str(), " ",
                               model::dtype_name(options.saved_dtype));
  base::Hasher hasher;
  hasher.update(text.data(), text.size());
  return hasher.hex();
}

base::Json measured_times(const PruneSetup& setup, const eval::TokenTimeOptions& options) {
  std::optional<ops::Threads> threads;
  if (setup.threads_of_leader > 0) threads.emplace(setup.threads_of_leader);
  return record::kept_times(setup.place.saved_file.parent_path(), identity_of(setup.input.config, options),
                            [&] {
                              const auto timed = [&](std::int64_t done, std::int64_t all) {
                                setup.observer.progress("prune: times of parts", done, all);
                                record::stop_if_asked(setup.observer, "prune", "nothing yet");
                              };
                              return eval::TokenTimes::measured(setup.input.config, options, timed).to_json();
                            });
}

}  // namespace

Size::Size(eval::TokenTimes times, const architecture::Config& input)
    : times_(std::make_shared<const eval::TokenTimes>(std::move(times))),
      step_seconds_(times_->seconds(input) / kSteps) {}

std::int64_t Size::of(const architecture::Config& model) const {
  if (!times_) return architecture::num_parameters(model);
  std::int64_t sum = 0;
  for (const auto seconds : times_->parts(model)) sum += steps(seconds, step_seconds_);
  return sum;
}

std::string Size::text(std::int64_t size) const {
  if (!times_) return base::join(size, " parameters");
  return base::join(std::fixed, std::setprecision(3), 1000 * seconds(size), " ms a token");
}

std::string Size::short_text(std::int64_t size) const {
  return times_ ? text(size) : base::human_count(static_cast<double>(size));
}

Size size_of(const PruneSetup& setup) {
  const auto& target = setup.options.target;
  if (!target.is_time()) return {};
  auto options = eval::token_time_options(target.time, setup.input.options().device());
  options.saved_dtype = model::scalar_type(setup.input.file_dtype);
  const auto measure = [&] { return measured_times(setup, options).dump(); };
  const auto text = setup.group ? comm::led(*setup.group, measure) : measure();
  return {eval::TokenTimes(base::parse_json(text)), setup.input.config};
}

std::int64_t target_of(const architecture::Config& input, const PruneOptions& options, const Size& size) {
  const auto& target = options.target;
  if (!size.times()) return target_parameters(input, options);
  const auto whole = size.of(input);
  const double whole_seconds = size.seconds(whole);
  const double seconds = target.time.seconds(whole_seconds);
  base::require<base::UsageError>(seconds < whole_seconds, "prune: target: expected less than the ",
                                  size.text(whole), " of the whole model, found ", 1000 * seconds,
                                  " ms; ask for less.");
  return static_cast<std::int64_t>(static_cast<double>(whole) * (seconds / whole_seconds));
}

}  // namespace retort::prune
