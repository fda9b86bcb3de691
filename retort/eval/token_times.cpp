#include "retort/eval/token_times.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include "retort/architecture/counts.h"
#include "retort/architecture/longest_context.h"
#include "retort/base/error.h"
#include "retort/bench/operands.h"
#include "retort/bench/stopwatch.h"
#include "retort/eval/memory_plan.h"
#include "retort/model/dtype.h"
#include "retort/model/weights.h"
#include "retort/record/keys.h"

namespace retort::eval {
namespace {

namespace keys = record::keys;
using architecture::Block;
using architecture::Config;

constexpr record::Key kSecondsBySize{"seconds"}, kOtherSeconds{"other_seconds"};
constexpr std::int64_t kSizes = 8;  // of a part that are timed, at most
constexpr std::int64_t kTimedTokens = 24, kRuns = 3;
constexpr std::int64_t kFewIds = 512;        // of a head that takes next to no time
constexpr double kUncached_bytes = 1 << 28;  // together, copies of a part do not stay in a cache
constexpr std::int64_t kNumbers = 1 << 20;   // that weights repeat
constexpr double kLeastSlope = 0.1;          // of the mean one

Block attention_of(const Block& block, std::int64_t groups) {
  auto part = block;
  part.mlp = {};
  part.attention->num_heads = groups * (block.attention->num_heads / block.attention->num_kv_heads);
  part.attention->num_kv_heads = groups;
  return part;
}

Block mlp_of(const Block& block, std::int64_t width) {
  auto part = block;
  part.attention.reset();
  std::get<architecture::DenseMlp>(part.mlp).width = width;
  return part;
}

// Attentions that differ in their number of KV groups only have one name.
std::string attention_name(const Block& block) {
  const auto& attention = *block.attention;
  auto name = base::join("attention of ", attention.num_heads / attention.num_kv_heads, " heads of ",
                         attention.head_dim, " a group");
  return attention.kind.window ? base::join(name, ", window of ", *attention.kind.window) : name;
}

constexpr const char* kMlpName = "MLP";

// A part in the size that it has in a block, and in smaller ones.
struct Part {
  std::int64_t largest = 0;
  std::function<Block(std::int64_t size)> of_size;
};

std::map<std::string, Part> parts_of(const Config& model) {
  std::map<std::string, Part> parts;
  const auto add = [&](const std::string& name, std::int64_t size, auto make, const Block& block) {
    if (size > parts[name].largest) parts[name] = {size, [=](std::int64_t of) { return make(block, of); }};
  };
  for (const auto& block : model.blocks) {
    if (block.attention) add(attention_name(block), block.attention->num_kv_heads, attention_of, block);
    if (const auto width = architecture::mlp_width(block)) add(kMlpName, width, mlp_of, block);
  }
  return parts;
}

std::vector<std::int64_t> timed_sizes(std::int64_t largest) {
  std::vector<std::int64_t> sizes;
  const auto count = std::min(kSizes, largest);
  for (std::int64_t i = 1; i <= count; ++i) sizes.push_back(i * largest / count);
  return sizes;
}

// One whole block, so that it is a model, and some of a part.
Config with_parts(Config model, std::int64_t ids, const Block& part = {}, std::int64_t copies = 0) {
  model.vocab_size = std::min(model.vocab_size, ids);
  model.bos_token_ids.clear();
  model.eos_token_ids.clear();
  model.pad_token_id.reset();
  const auto whole = std::ranges::find_if(
      model.blocks, [](const Block& block) { return block.attention && architecture::mlp_width(block) > 0; });
  std::vector<Block> blocks{whole == model.blocks.end() ? model.blocks.front() : *whole};
  blocks.insert(blocks.end(), static_cast<std::size_t>(copies), part);
  model.blocks = std::move(blocks);
  return model;
}

std::int64_t copies_of(const Config& model, const Block& part, c10::ScalarType dtype) {
  const auto bytes = static_cast<double>(architecture::matrix_parameters(part, model.hidden_size)) *
                     static_cast<double>(c10::elementSize(dtype));
  const auto wanted = static_cast<std::int64_t>(std::ceil(kUncached_bytes / std::max(1.0, bytes)));
  return std::min(std::ssize(model.blocks), std::max<std::int64_t>(2, wanted));
}

std::vector<Prompt> prompts_of(const Config& model, const TokenTimeOptions& options) {
  const auto length = std::max<std::int64_t>(1, options.context - kTimedTokens);
  std::vector<Prompt> prompts;
  for (std::uint64_t text = 0; text < static_cast<std::uint64_t>(options.batch); ++text)
    prompts.push_back({.ids = bench::random_ids(length, model.vocab_size, text), .number = text});
  return prompts;
}

TextsOptions texts_of(const TokenTimeOptions& options) {
  return {.max_new_tokens = kTimedTokens, .texts_at_once = options.batch};
}

// Irregular, and made in no time: normal ones would take longer than what is timed.
model::UnitSource irregular_weights(const Config& model, c10::ScalarType saved_dtype) {
  auto source = model::random_source(model, 0);
  source.read = [numbers = bench::irregular(kNumbers, at::kFloat).mul_(0.05).to(saved_dtype)](
                    std::size_t, std::int64_t, const at::Tensor& part) { bench::repeat(numbers, part); };
  return source;
}

void check(const Config& model, const TokenTimeOptions& options) {
  const auto longest = architecture::longest_context(model);
  base::require<base::UsageError>(options.context > kTimedTokens && options.context <= longest,
                                  "target.context: expected ", kTimedTokens + 1, " to ", longest,
                                  " tokens of this model, found ", options.context,
                                  "; choose one in this range.");
}

double at_size(const SecondsBySize& curve, std::int64_t size) {
  const auto above = curve.lower_bound(size);
  base::ensure(above != curve.end(), "no part is larger than the measured one");
  const auto below =
      above == curve.begin() ? std::pair<const std::int64_t, double>{0, 0.0} : *std::prev(above);
  const auto share =
      static_cast<double>(size - below.first) / static_cast<double>(above->first - below.first);
  return below.second + share * (above->second - below.second);
}

// Of random weights.
double token_seconds(const Config& model, const TokenTimeOptions& options) {
  TextWeights weights(irregular_weights(model, options.saved_dtype), options.dtype, options.device);
  return eval::token_seconds(weights, options);
}

}  // namespace

TokenTimeOptions token_time_options(const TimeTarget& target, const c10::Device& device) {
  return {.batch = target.batch,
          .context = target.context,
          .dtype = model::parse_scoring_dtype(target.dtype, device),
          .device = device};
}

double token_seconds(TextWeights& weights, const TokenTimeOptions& options) {
  check(weights.config(), options);
  const auto prompts = prompts_of(weights.config(), options);
  double fastest = std::numeric_limits<double>::infinity();
  for (std::int64_t run = 0; run < kRuns; ++run) {
    std::vector<double> at;
    std::optional<bench::Stopwatch> watch;
    generate_texts(weights, prompts, texts_of(options),
                   {.begins = [&] { watch.emplace(options.device); },
                    .token =
                        [&](std::size_t text) {
                          if (text == 0) at.push_back(watch->seconds());
                        }});
    for (std::size_t i = 1; i < at.size(); ++i) fastest = std::min(fastest, at[i] - at[i - 1]);
  }
  return fastest;
}

shard::MemoryPlan plan_token_seconds(const Config& model, const TokenTimeOptions& options) {
  auto plan = plan_texts(model, static_cast<std::int64_t>(c10::elementSize(options.dtype)),
                         prompts_of(model, options), texts_of(options), ops::path_of(options.device),
                         WeightsFrom::file);
  plan.advice = "lower target.batch or target.context, or use a machine with more";
  return plan;
}

SecondsBySize rising(const SecondsBySize& measured) {
  struct Pool {
    double sum = 0;
    std::int64_t count = 0;
    double mean() const { return sum / static_cast<double>(count); }
  };
  std::vector<Pool> pools;
  for (const auto& [size, seconds] : measured) {
    pools.push_back({std::max(0.0, seconds), 1});
    while (pools.size() > 1 && pools[pools.size() - 2].mean() > pools.back().mean()) {
      const auto last = pools.back();
      pools.pop_back();
      pools.back() = {pools.back().sum + last.sum, pools.back().count + last.count};
    }
  }
  std::vector<double> level;
  for (const auto& pool : pools) level.insert(level.end(), static_cast<std::size_t>(pool.count), pool.mean());
  constexpr double kLeast_seconds = 1e-9;  // where the clock saw nothing
  const double slope = kLeastSlope * std::max(kLeast_seconds, level.empty() ? 0.0 : level.back()) /
                       static_cast<double>(measured.empty() ? 1 : measured.rbegin()->first);
  SecondsBySize curve;
  std::int64_t size_before = 0;
  double before = 0;
  for (auto next = level.begin(); const auto& [size, seconds] : measured) {
    before = std::max(*next++, before + slope * static_cast<double>(size - size_before));
    curve[size] = before;
    size_before = size;
  }
  return curve;
}

TokenTimes TokenTimes::measured(const Config& model, const TokenTimeOptions& options,
                                const std::function<void(std::int64_t, std::int64_t)>& timed) {
  check(model, options);
  const auto parts = parts_of(model);
  std::int64_t done = 0, all = 2;
  for (const auto& [name, part] : parts) all += std::ssize(timed_sizes(part.largest));
  const auto seconds_of = [&](const Config& of) {
    const auto seconds = token_seconds(of, options);
    if (timed) timed(++done, all);
    return seconds;
  };
  TokenTimes times;
  const auto least = with_parts(model, kFewIds);
  const double least_seconds = seconds_of(least);
  for (const auto& [name, part] : parts) {
    SecondsBySize curve;
    for (const auto size : timed_sizes(part.largest)) {
      const auto block = part.of_size(size);
      const auto copies = copies_of(model, block, options.dtype);
      curve[size] = (seconds_of(with_parts(model, kFewIds, block, copies)) - least_seconds) /
                    static_cast<double>(copies);
    }
    times.curves_[name] = rising(curve);
  }
  const auto of_all_ids = seconds_of(with_parts(model, model.vocab_size));
  times.other_seconds_ = 0;
  times.other_seconds_ = std::max(0.0, of_all_ids - times.seconds(least));
  times.conditions_ = {{"batch", options.batch},
                       {keys::kContext, options.context},
                       {keys::kDtype, model::dtype_name(options.dtype)},
                       {"saved_dtype", model::dtype_name(options.saved_dtype)},
                       {"device", options.device.str()},
                       {"threads", at::get_num_threads()}};
  return times;
}

TokenTimes::TokenTimes(const base::Json& json)
    : conditions_(json), other_seconds_(json.at(kOtherSeconds).get<double>()) {
  for (const auto& [name, points] : json.at(kSecondsBySize).items())
    for (const auto& point : points)
      curves_[name][point.at(0).get<std::int64_t>()] = point.at(1).get<double>();
  conditions_.erase(std::string(kSecondsBySize));
  conditions_.erase(std::string(kOtherSeconds));
}

std::vector<double> TokenTimes::parts(const Config& model) const {
  std::vector<double> parts{other_seconds_};
  const auto add = [&](const std::string& name, std::int64_t size) {
    const auto curve = curves_.find(name);
    base::ensure(curve != curves_.end(), "every part was measured");
    parts.push_back(at_size(curve->second, size));
  };
  for (const auto& block : model.blocks) {
    if (block.attention) add(attention_name(block), block.attention->num_kv_heads);
    if (const auto width = architecture::mlp_width(block)) add(kMlpName, width);
  }
  return parts;
}

double TokenTimes::seconds(const Config& model) const {
  const auto all = parts(model);
  return std::accumulate(all.begin(), all.end(), 0.0);
}

base::Json TokenTimes::to_json() const {
  auto json = conditions_;
  json[kOtherSeconds] = other_seconds_;
  json[kSecondsBySize] = base::Json::object();
  for (const auto& [name, curve] : curves_)
    for (const auto& [size, seconds] : curve) json[kSecondsBySize][name].push_back({size, seconds});
  return json;
}

std::int64_t token_times_bytes(const Config& model, const TokenTimeOptions& options) {
  std::int64_t most = 0;
  const auto add = [&](const Config& timed) {
    most = std::max(most, plan_token_seconds(timed, options).total_bytes());
  };
  add(with_parts(model, model.vocab_size));
  for (const auto& [name, part] : parts_of(model)) {
    const auto block = part.of_size(part.largest);
    add(with_parts(model, kFewIds, block, copies_of(model, block, options.dtype)));
  }
  return most;
}

}  // namespace retort::eval
