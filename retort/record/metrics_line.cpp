#include "retort/record/metrics_line.h"

#include <limits>

#include "retort/record/keys.h"

namespace retort::record {
namespace {

using base::Json;

const Json& at(const Json& object, Key key) {
  static const Json kNull;
  if (!object.is_object()) return kNull;
  const auto found = object.find(key);
  return found == object.end() ? kNull : *found;
}

std::string text(const Json& value) {
  return value.is_string() ? value.get<std::string>() : std::string();
}

std::int64_t whole(const Json& value) {
  return value.is_number_integer() ? value.get<std::int64_t>() : 0;
}

std::optional<double> number(const Json& value) {
  return value.is_number() ? std::optional(value.get<double>()) : std::nullopt;
}

NamedNumbers numbers(const Json& object) {
  NamedNumbers named;
  if (!object.is_object()) return named;
  for (const auto& [name, value] : object.items())
    named.emplace_back(name, number(value).value_or(std::numeric_limits<double>::quiet_NaN()));
  return named;
}

void put(Json& json, Key key, const std::optional<double>& value) {
  if (value) json[key] = *value;
}

void put(Json& json, Key key, const NamedNumbers& values) {
  if (!values.empty()) json[key] = to_json(values);
}

}  // namespace

Json to_json(const NamedNumbers& numbers) {
  Json json = Json::object();
  for (const auto& [name, value] : numbers) json[name] = value;
  return json;
}

Json to_json(const MetricsLine& line) {
  Json json = {{keys::kStage, line.stage}, {keys::kStep, line.step}, {keys::kTokens, line.tokens}};
  put(json, keys::kLoss, line.loss);
  put(json, keys::kParts, line.parts);
  put(json, keys::kWrittenParts, line.written_parts);
  put(json, keys::kWritten, line.written);
  put(json, keys::kGradientNorm, line.gradient_norm);
  put(json, keys::kLr, line.lr);
  put(json, keys::kTokensPerSecond, line.tokens_per_second);
  put(json, keys::kPeakFraction, line.peak_fraction);
  put(json, keys::kSeconds, line.seconds);
  put(json, keys::kPhaseSeconds, line.phase_seconds);
  put(json, keys::kOperationSeconds, line.operation_seconds);
  put(json, keys::kHeldOut, line.held_out);
  return json;
}

MetricsLine metrics_line(const Json& json) {
  return {.stage = text(at(json, keys::kStage)),
          .step = whole(at(json, keys::kStep)),
          .tokens = whole(at(json, keys::kTokens)),
          .loss = number(at(json, keys::kLoss)),
          .parts = numbers(at(json, keys::kParts)),
          .written_parts = numbers(at(json, keys::kWrittenParts)),
          .written = numbers(at(json, keys::kWritten)),
          .gradient_norm = number(at(json, keys::kGradientNorm)),
          .lr = number(at(json, keys::kLr)),
          .tokens_per_second = number(at(json, keys::kTokensPerSecond)),
          .peak_fraction = number(at(json, keys::kPeakFraction)),
          .seconds = number(at(json, keys::kSeconds)),
          .phase_seconds = numbers(at(json, keys::kPhaseSeconds)),
          .operation_seconds = numbers(at(json, keys::kOperationSeconds)),
          .held_out = numbers(at(json, keys::kHeldOut))};
}

}  // namespace retort::record
