// How fast `retort generate` makes the tokens of one text, beside the rates at which this machine reads
// memory.  Every token reads each weight once, so such a rate is the bound: that of memory, or of the cache
// where the weights stay in it.  Prints one JSON object.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <limits>

#include "retort/architecture/counts.h"
#include "retort/base/error.h"
#include "retort/base/json.h"
#include "retort/base/machine.h"
#include "retort/base/random.h"
#include "retort/eval/generate_texts.h"
#include "retort/kernels/cpu/panel_product.h"
#include "retort/model/dtype.h"
#include "retort/ops/tensor_allocator.h"
#include "retort/shard/acquired_unit.h"

namespace {

using namespace retort;

// No cache holds a notable part of it.
constexpr std::int64_t kReadBytes = std::int64_t{1} << 30;

struct Settings {
  std::string model, dtype = "fp32", prompts;
  std::int64_t prompt_tokens = 64, new_tokens = 64, rounds = 5;
};

std::unique_ptr<shard::Parameters> loaded(const Settings& s, at::ScalarType dtype) {
  return shard::resident_parameters(model::load_weights(s.model, dtype, at::kCPU), shard::Use::frozen, dtype);
}

// Weights of which a token reads every value: all, but of an embedding that is no head only one row.  Float32
// that holds bfloat16 numbers is packed as those.
std::int64_t read_bytes_per_token(shard::Parameters& parameters) {
  const auto& config = parameters.config();
  auto numel = architecture::num_parameters(config);
  if (!config.tie_word_embeddings) numel -= config.vocab_size * config.hidden_size;
  bool narrow = true;
  std::int64_t item_bytes = 0;
  for (std::int64_t unit = 0; unit < std::ssize(parameters.layout().units); ++unit) {
    const shard::AcquiredUnit acquired(parameters, unit);
    narrow = narrow && kernels::cpu::holds_bfloat16_numbers(acquired.flat());
    item_bytes = acquired.flat().element_size();
  }
  return numel * (narrow ? 2 : item_bytes);
}

std::uint64_t sum_of_words(const std::uint64_t* words, std::int64_t count) {
  constexpr std::int64_t kLanes = 32;
  std::uint64_t lanes[kLanes] = {};
  for (std::int64_t i = 0; i + kLanes <= count; i += kLanes)
    for (std::int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] += words[i + lane];
  std::uint64_t sum = 0;
  for (const auto lane : lanes) sum += lane;
  return sum;
}

// Bytes per second at which all threads together read the first bytes of a buffer.  A short read would
// measure how threads start, so it is repeated.
double read_rate(const at::Tensor& words, std::int64_t bytes) {
  const auto* data = reinterpret_cast<const std::uint64_t*>(words.const_data_ptr<std::int64_t>());
  const auto threads = at::get_num_threads();
  std::vector<std::uint64_t> sums(static_cast<std::size_t>(threads));
  const auto count = bytes / 8, passes = std::max<std::int64_t>(1, kReadBytes / 2 / bytes);
  const double start = base::monotonic_seconds();
  at::parallel_for(0, threads, 1, [&](std::int64_t first, std::int64_t last) {
    for (auto part = first; part < last; ++part) {
      const auto begin = count * part / threads, end = count * (part + 1) / threads;
      for (std::int64_t pass = 0; pass < passes; ++pass)
        sums[static_cast<std::size_t>(part)] += sum_of_words(data + begin, end - begin);
    }
  });
  const double seconds = base::monotonic_seconds() - start;
  base::ensure(sums.front() != 1, "the buffer holds zeros");  // and the compiler may not skip the sums
  return static_cast<double>(bytes * passes) / seconds;
}

std::vector<std::int32_t> random_prompt(const architecture::Config& config, std::int64_t tokens) {
  base::Random random(1, base::stream_of("prompt"));
  std::vector<std::int32_t> ids;
  for (std::int64_t i = 0; i < tokens; ++i)
    ids.push_back(
        static_cast<std::int32_t>(random.next_below(static_cast<std::uint64_t>(config.vocab_size))));
  return ids;
}

std::vector<std::int32_t> continued(eval::TextWeights& weights, const std::vector<std::int32_t>& prompt,
                                    std::int64_t new_tokens) {
  std::vector<std::int32_t> ids;
  const std::vector<eval::Prompt> prompts = {{prompt, 0}};
  eval::generate_texts(weights, prompts, {.max_new_tokens = new_tokens},
                       {.done = [&](std::size_t, const auto& made) { ids = made.ids; }});
  return ids;
}

double seconds_to_generate(eval::TextWeights& weights, const std::vector<std::int32_t>& prompt,
                           std::int64_t new_tokens) {
  const double start = base::monotonic_seconds();
  (void)continued(weights, prompt, new_tokens);
  return base::monotonic_seconds() - start;
}

base::Json measure(const Settings& s, shard::Parameters& parameters, at::ScalarType dtype) {
  const auto bytes = read_bytes_per_token(parameters);
  const auto words = at::zeros({std::max(bytes, kReadBytes) / 8}, at::kLong);
  const auto prompt = random_prompt(parameters.config(), s.prompt_tokens);
  eval::TextWeights weights(parameters);  // packed once, before the clock
  double memory = 0, same_size = 0, first = std::numeric_limits<double>::infinity(), all = first;
  for (std::int64_t round = 0; round < s.rounds; ++round) {
    memory = std::max(memory, read_rate(words, kReadBytes));
    same_size = std::max(same_size, read_rate(words, bytes));
    first = std::min(first, seconds_to_generate(weights, prompt, 1));
    all = std::min(all, seconds_to_generate(weights, prompt, s.new_tokens + 1));
  }
  const double rate = static_cast<double>(s.new_tokens) / (all - first);
  return {{"dtype", model::dtype_name(dtype)},
          {"threads", at::get_num_threads()},
          {"prompt_tokens", s.prompt_tokens},
          {"new_tokens", s.new_tokens},
          {"read_bytes_per_token", bytes},
          {"memory_bytes_per_second", memory},
          {"same_size_bytes_per_second", same_size},
          {"prompt_tokens_per_second", static_cast<double>(s.prompt_tokens) / first},
          {"tokens_per_second", rate},
          {"share_of_memory_rate", rate * static_cast<double>(bytes) / memory},
          {"share_of_same_size_rate", rate * static_cast<double>(bytes) / same_size}};
}

// Greedy continuations of the prompts, to compare two builds.
base::Json answers_of(const Settings& s, shard::Parameters& parameters) {
  eval::TextWeights weights(parameters);
  auto answers = base::Json::array();
  for (const auto& prompt : base::parse_json(base::read_file(s.prompts)))
    answers.push_back(continued(weights, prompt.get<std::vector<std::int32_t>>(), s.new_tokens));
  return answers;
}

}  // namespace

int main(int argc, char** argv) {
  Settings s;
  CLI::App app("Tokens per second of generation, beside the rate at which memory is read");
  app.add_option("MODEL", s.model, "model directory or GGUF file")->required();
  app.add_option("--dtype", s.dtype, "fp32, bf16 or fp64")->capture_default_str();
  app.add_option("--prompt-tokens", s.prompt_tokens)->capture_default_str();
  app.add_option("--new-tokens", s.new_tokens)->capture_default_str();
  app.add_option("--rounds", s.rounds, "of all in turn; the fastest counts")->capture_default_str();
  app.add_option("--continue", s.prompts,
                 "a JSON file with lists of ids: print their greedy continuations and measure nothing");
  CLI11_PARSE(app, argc, argv);
  try {
    ops::install_tensor_allocator();
    const auto dtype = model::parse_compute_dtype(s.dtype);
    const auto parameters = loaded(s, dtype);
    const auto result = s.prompts.empty() ? measure(s, *parameters, dtype) : answers_of(s, *parameters);
    std::cout << result.dump(s.prompts.empty() ? 1 : -1) << "\n";
  } catch (const base::Error& error) {
    std::cerr << "decode: " << error.what() << "\n";
    return static_cast<int>(error.code());
  }
}
