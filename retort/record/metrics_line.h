#pragma once
// A line of metrics.jsonl, docs/formats/metrics.md.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "retort/base/json.h"
#include "retort/base/words.h"

namespace retort::record {

using NamedNumbers = std::vector<std::pair<std::string, double>>;

/// Values by the words of an enum; what has nothing is left out.
template <typename Enum, std::size_t kCount>
NamedNumbers named(const std::array<double, kCount>& values) {
  NamedNumbers result;
  for (std::size_t i = 0; i < kCount; ++i)
    if (values[i] > 0) result.emplace_back(base::word(static_cast<Enum>(i)), values[i]);
  return result;
}

/// What a training step leaves in the metrics.  What a line does not tell is empty.
struct MetricsLine {
  std::string stage = {};
  std::int64_t step = 0;    ///< from 1; 0: before training
  std::int64_t tokens = 0;  ///< of the stage so far
  std::optional<double> loss = {};
  NamedNumbers parts = {};          ///< of the loss, unweighted
  NamedNumbers written_parts = {};  ///< of the loss on what the student wrote
  NamedNumbers written = {};        ///< counts of that: texts, tokens, ended, repeating
  std::optional<double> gradient_norm = {};
  std::optional<double> lr = {};
  std::optional<double> tokens_per_second = {};
  std::optional<double> peak_fraction = {};
  std::optional<double> seconds = {};
  NamedNumbers phase_seconds = {};      ///< of this step alone
  NamedNumbers operation_seconds = {};  ///< of this step alone
  NamedNumbers held_out = {};           ///< nats per token by source
};

base::Json to_json(const MetricsLine& line);
/// Takes what is there and of the right type; never throws.  A null among parts or held-out losses is NaN.
MetricsLine metrics_line(const base::Json& json);

/// The object {name: number}.
base::Json to_json(const NamedNumbers& numbers);

}  // namespace retort::record
