#pragma once
// How long a model takes for the next token of some texts, put together from times of attentions and MLPs of
// several sizes.  A search can so know the time of models that it does not make.

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "retort/architecture/config.h"
#include "retort/base/json.h"
#include "retort/eval/options.h"
#include "retort/eval/text_weights.h"
#include "retort/shard/memory_plan.h"

namespace retort::eval {

struct TokenTimeOptions {
  std::int64_t batch = 1;      ///< texts that get a token together
  std::int64_t context = 512;  ///< tokens that each text has by then
  c10::ScalarType dtype = c10::ScalarType::Float;
  c10::Device device = c10::kCPU;
  /// Weights have numbers of this type: float32 ones that are bfloat16 numbers pack into half the bytes.
  c10::ScalarType saved_dtype = c10::ScalarType::Float;
};

/// Throws UsageError for an unknown type.
TokenTimeOptions token_time_options(const TimeTarget& target, const c10::Device& device);

/// Of the fastest of some passes that give each text one more token.  Throws UsageError for a context that
/// the model is not made for.
double token_seconds(TextWeights& weights, const TokenTimeOptions& options);
/// Of that, with weights from a file.
shard::MemoryPlan plan_token_seconds(const architecture::Config& model, const TokenTimeOptions& options);

/// Seconds by how many KV groups or channels there are, strictly rising from none, which takes none.
using SecondsBySize = std::map<std::int64_t, double>;

/// The nearest rising curve through measured times: sizes that took longer than larger ones share their mean,
/// and no size adds less than a tenth of what it adds on the mean.
SecondsBySize rising(const SecondsBySize& measured);

class TokenTimes {
 public:
  /// Makes texts with models of random weights whose blocks are attentions, or MLPs, of one size.  `timed` is
  /// told how many of how many are done.  Throws UsageError for a context that the model is not made for.
  static TokenTimes measured(const architecture::Config& model, const TokenTimeOptions& options,
                             const std::function<void(std::int64_t done, std::int64_t all)>& timed = {});
  /// What to_json() returned; throws nlohmann's errors for anything else.
  explicit TokenTimes(const base::Json& json);

  /// Of a pass that gives each text a token: first what no part of a block takes, then each half of each
  /// block.  The model is the measured one with or without some of its parts.
  std::vector<double> parts(const architecture::Config& model) const;
  double seconds(const architecture::Config& model) const;
  std::string dtype() const { return conditions_.at("dtype"); }
  /// {"batch", "context", "dtype", "saved_dtype", "device", "threads", "other_seconds", "seconds": {part:
  /// [[size, seconds]]}}
  base::Json to_json() const;

 private:
  TokenTimes() = default;

  base::Json conditions_;
  double other_seconds_ = 0;
  std::map<std::string, SecondsBySize> curves_;
};

/// What measured() needs at most, bytes.
std::int64_t token_times_bytes(const architecture::Config& model, const TokenTimeOptions& options);

}  // namespace retort::eval
