#include "retort/eval/generation_config.h"

#include <string>

#include "retort/base/error.h"
#include "retort/base/json.h"
#include "retort/eval/sampling.h"
#include "retort/io/files_inside.h"

namespace retort::eval {
namespace {

constexpr const char* kGenerationConfig = "generation_config.json";

[[noreturn]] void fail(const base::Path& directory, const std::string& reason) {
  throw base::ModelError(
      base::join((directory / kGenerationConfig).string(), ": ", reason, "; correct it or remove the file."));
}

// Null where there is no such file.
base::Json generation_config(const base::Path& directory) {
  if (!io::entry_exists(directory / kGenerationConfig)) return nullptr;
  base::Json json;
  try {
    json = base::parse_json(base::read_file(io::resolve_inside(directory, kGenerationConfig)));
  } catch (const base::JsonFault& fault) {
    fail(directory, base::join("not JSON at byte ", fault.byte, " (", fault.reason, ")"));
  }
  if (!json.is_object()) fail(directory, "expected an object");
  return json;
}

template <typename Number>
void take(const base::Path& directory, const base::Json& json, const char* key, Number& into) {
  const auto found = json.find(key);
  if (found == json.end() || found->is_null()) return;
  const bool fits = std::is_integral_v<Number> ? found->is_number_integer() : found->is_number();
  if (!fits) fail(directory, base::join(key, " is not a number of its kind"));
  into = found->get<Number>();
}

}  // namespace

std::vector<std::int32_t> end_of_text_ids(const base::Path& directory, const architecture::Config& config) {
  const auto json = generation_config(directory);
  if (json.is_null()) return config.eos_token_ids;
  const auto found = json.find("eos_token_id");
  if (found == json.end() || found->is_null()) return config.eos_token_ids;
  std::vector<std::int32_t> ids;
  for (const auto& id : found->is_array() ? *found : base::Json::array({*found})) {
    if (!id.is_number_integer() || id < 0 || id >= config.vocab_size)
      fail(directory, "eos_token_id is not an id of the vocabulary");
    ids.push_back(id.get<std::int32_t>());
  }
  return ids;
}

Sampling default_sampling(const base::Path& directory) {
  Sampling sampling;
  const auto json = generation_config(directory);
  if (json.is_null()) return sampling;
  take(directory, json, "repetition_penalty", sampling.repetition_penalty);
  const auto draws = json.find("do_sample");
  if (draws != json.end() && !draws->is_null() && !draws->is_boolean())
    fail(directory, "do_sample is neither true nor false");
  if (draws != json.end() && draws->is_boolean() && draws->get<bool>()) {
    sampling.temperature = 1;
    take(directory, json, "temperature", sampling.temperature);
    take(directory, json, "top_k", sampling.top_k);
    take(directory, json, "top_p", sampling.top_p);
    take(directory, json, "min_p", sampling.min_p);
  }
  try {
    check(sampling);
  } catch (const base::UsageError& error) {
    fail(directory, error.what());
  }
  return sampling;
}

}  // namespace retort::eval
