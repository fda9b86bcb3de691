#pragma once
// How the library tells what it does.  It never prints: the program passes an Observer and decides what to
// show.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace retort::record {

enum class Level { debug, info, warning, error };

/// One training step, as a person wants to follow it.
struct StepReport {
  std::string stage;
  std::int64_t step = 0;                              ///< from 1
  std::int64_t steps = 0;                             ///< of the stage
  std::int64_t tokens = 0;                            ///< seen by the stage so far
  double loss = 0;                                    ///< weighted sum, nats per token
  std::vector<std::pair<std::string, double>> parts;  ///< of the loss, in recipe order, unweighted
  std::vector<std::pair<std::string, double>> written_parts = {};  ///< of what the student wrote itself
  double lr = 0;
  double gradient_norm = 0;
  double tokens_per_second = 0;
  std::optional<double> peak_fraction;     ///< of the measured matrix-product peak
  std::optional<double> eta_seconds;       ///< of the stage
  std::optional<double> held_out_loss;     ///< nats per token, when this step measured it
  std::optional<double> writing_fraction;  ///< of the step's time, where the student writes texts
};

/// Receives what happens.  The default of every function does nothing, so a test overrides what it looks at.
class Observer {
 public:
  virtual ~Observer() = default;

  virtual void message(Level level, std::string_view text);
  virtual void step(const StepReport& report);
  /// Work that is not training: `done` of `total` units of `what`; total 0 means not known.
  virtual void progress(std::string_view what, std::int64_t done, std::int64_t total);
  /// True when the run shall finish its step, save and return; asked between steps.
  virtual bool stop_requested() const;
};

}  // namespace retort::record
