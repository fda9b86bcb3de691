#pragma once
// What a target limits: parameters, or the time of a token.

#include <cstdint>
#include <memory>
#include <string>

#include "retort/architecture/config.h"
#include "retort/eval/token_times.h"
#include "retort/prune/options.h"
#include "retort/prune/setup.h"

namespace retort::prune {

class Size {
 public:
  Size() = default;  ///< in parameters
  /// In steps of a small part of the time that `input` takes, so that sizes of parts are whole numbers.
  Size(eval::TokenTimes times, const architecture::Config& input);

  /// Of `input` with or without some of its parts; sizes of a block's halves add up where it is a time.
  std::int64_t of(const architecture::Config& model) const;
  /// "24.1 ms a token", "3300000 parameters"
  std::string text(std::int64_t size) const;
  /// The same, or "3.3M".
  std::string short_text(std::int64_t size) const;
  /// Null where the size is a number of parameters.
  const eval::TokenTimes* times() const { return times_.get(); }
  double seconds(std::int64_t size) const { return static_cast<double>(size) * step_seconds_; }

 private:
  std::shared_ptr<const eval::TokenTimes> times_;
  double step_seconds_ = 0;
};

/// What the options of a setup limit.  Where it is a time, rank 0 measures, or reads what it has measured
/// before for the same; all ranks get the same.  Collective.
Size size_of(const PruneSetup& setup);

/// The target in `size`.  Throws UsageError for one that is no smaller than the input.
std::int64_t target_of(const architecture::Config& input, const PruneOptions& options, const Size& size);

}  // namespace retort::prune
