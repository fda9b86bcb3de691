// How fast `retort generate` makes tokens, beside the rates at which this machine reads memory.  Every token
// reads each weight once, so such a rate is the bound: that of memory, or of the cache where the weights stay
// in it.  Prints one JSON object.
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
#include "retort/eval/generate.h"
#include "retort/model/dtype.h"
#include "retort/model/sparsity.h"
#include "retort/ops/tensor_allocator.h"

namespace {

using namespace retort;

// No cache holds a notable part of it.
constexpr std::int64_t kReadBytes = std::int64_t{1} << 30;

struct Settings {
  std::string model, dtype = "fp32", prompts;
  std::int64_t prompt_tokens = 64, new_tokens = 64, rounds = 5;
  bool pack = true;
};

struct Subject {
  std::unique_ptr<shard::Parameters> parameters;
  std::vector<std::string> packed;  ///< layers of which tokens read no zeros
};

Subject subject_of(const Settings& s, at::ScalarType dtype) {
  auto weights = model::load_weights(s.model, dtype, at::kCPU);
  auto packed = s.pack ? model::packed_layers(weights.lineage, at::kCPU, dtype) : std::vector<std::string>();
  return {shard::resident_parameters(std::move(weights), shard::Use::frozen, dtype), std::move(packed)};
}

// Weights of which a token reads every value: all, but of an embedding that is no head only one row, and of
// packed layers what is left without their zeros.
std::int64_t read_bytes_per_token(const architecture::Config& config, const architecture::Layout& layout,
                                  std::span<const std::string> packed, std::int64_t item_bytes) {
  auto numel = architecture::num_parameters(config);
  if (!config.tie_word_embeddings) numel -= config.vocab_size * config.hidden_size;
  for (const auto& unit : layout.units)
    for (const auto& tensor : unit.tensors)
      if (std::ranges::find(packed, tensor.name) != packed.end()) numel -= tensor.numel;
  return numel * item_bytes + model::packed_bytes(layout, packed, item_bytes);
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

double seconds_to_generate(Subject& subject, const std::vector<std::int32_t>& prompt,
                           std::int64_t new_tokens) {
  const double start = base::monotonic_seconds();
  (void)eval::generate(*subject.parameters, prompt, {.max_new_tokens = new_tokens}, {}, subject.packed);
  return base::monotonic_seconds() - start;
}

base::Json measure(const Settings& s, Subject& subject, at::ScalarType dtype) {
  const auto& config = subject.parameters->config();
  const auto bytes = read_bytes_per_token(config, subject.parameters->layout(), subject.packed,
                                          static_cast<std::int64_t>(at::elementSize(dtype)));
  const auto words = at::zeros({std::max(bytes, kReadBytes) / 8}, at::kLong);
  const auto prompt = random_prompt(config, s.prompt_tokens);
  double memory = 0, same_size = 0, first = std::numeric_limits<double>::infinity(), all = first;
  for (std::int64_t round = 0; round < s.rounds; ++round) {
    memory = std::max(memory, read_rate(words, kReadBytes));
    same_size = std::max(same_size, read_rate(words, bytes));
    first = std::min(first, seconds_to_generate(subject, prompt, 1));
    all = std::min(all, seconds_to_generate(subject, prompt, s.new_tokens + 1));
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
base::Json continued(const Settings& s, Subject& subject) {
  auto answers = base::Json::array();
  for (const auto& prompt : base::parse_json(base::read_file(s.prompts)))
    answers.push_back(eval::generate(*subject.parameters, prompt.get<std::vector<std::int32_t>>(),
                                     {.max_new_tokens = s.new_tokens}, {}, subject.packed)
                          .ids);
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
  app.add_flag("!--zeros-too", s.pack, "read 2:4 layers as if they were dense");
  CLI11_PARSE(app, argc, argv);
  try {
    ops::install_tensor_allocator();
    const auto dtype = model::parse_compute_dtype(s.dtype);
    auto subject = subject_of(s, dtype);
    const auto result = s.prompts.empty() ? measure(s, subject, dtype) : continued(s, subject);
    std::cout << result.dump(s.prompts.empty() ? 1 : -1) << "\n";
  } catch (const base::Error& error) {
    std::cerr << "decode: " << error.what() << "\n";
    return static_cast<int>(error.code());
  }
}
