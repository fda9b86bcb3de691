#pragma once
// Seconds of a forward pass, put together from parts that are measured once: blocks of each shape and the
// head.  Models that share shapes share the measurement, so that two models differ by what differs in them.

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>

#include "retort/architecture/config.h"
#include "retort/architecture/counts.h"
#include "retort/base/json.h"

namespace retort::eval {

struct SpeedOptions {
  std::int64_t context = 512, batch = 1;  ///< sequences of so many tokens go through together
  std::int64_t rounds = 5;                ///< of all parts in turn; the fastest of a part counts
  c10::ScalarType dtype = c10::ScalarType::Float;
  c10::Device device = c10::kCPU;
};

struct ModelCost {
  architecture::Cost counted;  ///< weights, keys and values have 16 bits, whatever was timed
  double seconds = 0;          ///< of a forward pass
};
/// {"parameters", "active_parameters", "bytes", "flops_per_token", "seconds"}
base::Json to_json(const ModelCost& cost);

class SpeedTable {
 public:
  /// Runs every part of the models, in memory for the largest of them.
  static SpeedTable measured(std::span<const architecture::Config> models, const SpeedOptions& options);

  /// Of a forward pass of `batch` * `context` tokens; every part of the model must have been measured.
  double seconds(const architecture::Config& model) const;
  /// All that a model costs in `batch` sequences of `context` tokens.
  ModelCost cost(const architecture::Config& model) const;
  /// Conditions, {"part": seconds} and a hash of both.
  base::Json to_json() const;

 private:
  SpeedOptions options_;
  std::map<std::string, double> seconds_;
};

}  // namespace retort::eval
