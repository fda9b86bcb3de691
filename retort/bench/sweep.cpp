#include "retort/bench/sweep.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <numeric>

#include "retort/bench/kernel_work.h"
#include "retort/bench/operands.h"
#include "retort/ops/attention.h"

namespace retort::bench {
namespace {

constexpr std::int64_t kLargestMultiple = 256, kMostGroups = 16;
constexpr std::int64_t kHeadDims[] = {32, 48, 64, 80, 96, 128};
constexpr double kSpread[] = {0.8125, 0.9375, 1.0625, 1.1875};  // the middles of four parts of 3/4 to 5/4

const architecture::Attention* largest_attention(const architecture::Config& config) {
  const architecture::Attention* largest = nullptr;
  for (const auto& block : config.blocks)
    if (block.attention && (!largest || block.attention->num_kv_heads > largest->num_kv_heads))
      largest = &*block.attention;
  return largest;
}

std::int64_t largest_width(const architecture::Config& config) {
  std::int64_t width = 0;
  for (const auto& block : config.blocks) width = std::max(width, architecture::mlp_width(block));
  return width;
}

double flops_of_all(const std::vector<Linear>& weights, std::int64_t tokens) {
  double sum = 0;
  for (const auto& weight : weights) sum += 3 * flops(weight, tokens);
  return sum;
}

std::vector<std::int64_t> widths_of(const SweepPlan& plan) {
  std::vector<std::int64_t> widths;
  for (const auto multiple : multiples_of_sweep(plan.center))
    for (const auto width : widths_of_sweep(plan.center, multiple)) widths.push_back(width);
  return widths;
}

std::vector<Linear> all_weights(const SweepPlan& plan) {
  std::vector<Linear> all;
  for (const auto width : widths_of(plan))
    for (const auto& weight : plan.weights_of(width)) all.push_back(weight);
  return all;
}

// The rate of all passes of the weights of each value.  Each pass is timed for itself: the shorter a work,
// the likelier it meets a moment when nothing else runs.
std::vector<ValueRate> measure_values(const std::vector<std::int64_t>& values,
                                      const std::function<std::vector<Linear>(std::int64_t)>& weights_of,
                                      std::int64_t tokens, at::ScalarType dtype, at::Device device,
                                      const Effort& effort, const std::function<void(double)>& done) {
  std::vector<Linear> all;
  for (const auto value : values)
    for (const auto& weight : weights_of(value)) all.push_back(weight);
  const Operands operands(all, tokens, dtype, device);
  std::vector<Timed> works;
  for (const auto& weight : all)
    for (const auto pass : kPasses)
      works.push_back({[&operands, weight, pass] { operands.run(weight, pass); }});
  time_in_turn(works, effort, device, done);
  std::vector<ValueRate> rates;
  auto work = works.begin();
  for (const auto value : values) {
    const auto weights = weights_of(value);
    double seconds = 0;
    for (std::size_t i = 0; i < weights.size() * std::size(kPasses); ++i) seconds += (work++)->seconds;
    rates.push_back({value, flops_of_all(weights, tokens) / seconds});
  }
  return rates;
}

// Attention over one sequence, with all that its gradient needs.
struct HeadsWork {
  at::Tensor q_NHE, k_NKE, v_NKE, gout_NHE, gq_NHE, gk_NKE, gv_NKE;
  std::vector<std::int64_t> starts;

  HeadsWork(const architecture::Attention& shape, std::int64_t tokens, const at::TensorOptions& options)
      : starts{0, tokens} {
    const auto heads = [&](std::int64_t count) {
      return irregular(tokens * count * shape.head_dim, options).view({tokens, count, shape.head_dim});
    };
    q_NHE = heads(shape.num_heads), gout_NHE = heads(shape.num_heads), gq_NHE = heads(shape.num_heads);
    k_NKE = heads(shape.num_kv_heads), v_NKE = heads(shape.num_kv_heads);
    gk_NKE = heads(shape.num_kv_heads), gv_NKE = heads(shape.num_kv_heads);
  }
  void run() const {
    const auto out = ops::attention(q_NHE, k_NKE, v_NKE, starts);
    ops::attention_backward(gout_NHE, q_NHE, k_NKE, v_NKE, out, starts, gq_NHE, gk_NKE, gv_NKE);
  }
};

}  // namespace

double Sweep::rate_of(std::int64_t multiple) const {
  double rate = 0, left = 1;
  for (std::size_t i = 0; i < multiples.size(); ++i) {
    if (multiples[i].multiple < multiple && i + 1 < multiples.size()) continue;
    const double part = i + 1 < multiples.size() ? left / 2 : left;
    rate += part * multiples[i].flops_per_second;
    left -= part;
  }
  return rate;
}

double Sweep::share_of(std::int64_t multiple) const {
  double best = 0;
  for (const auto& one : multiples) best = std::max(best, rate_of(one.multiple));
  return best > 0 ? rate_of(multiple) / best : 1;
}

double Sweep::rate_at(std::int64_t width) const {
  double rate = 0;
  for (const auto& one : multiples)
    if (width > 0 && width % one.multiple == 0) rate = one.flops_per_second;
  return rate;
}

std::int64_t Sweep::advised_multiple() const {
  for (const auto& one : multiples)
    if (share_of(one.multiple) >= 1 - kLoss) return one.multiple;
  return 1;
}

std::vector<std::int64_t> multiples_of_sweep(std::int64_t center) {
  std::vector<std::int64_t> multiples;
  for (std::int64_t multiple = 1; multiple <= std::min(kLargestMultiple, center / 4); multiple *= 2)
    multiples.push_back(multiple);
  return multiples;
}

std::vector<std::int64_t> widths_of_sweep(std::int64_t center, std::int64_t multiple) {
  std::vector<std::int64_t> widths;
  for (const double part : kSpread) {
    const auto near = static_cast<std::int64_t>(part * static_cast<double>(center));
    const auto width = multiple * (near / (2 * multiple) * 2 + 1);
    if (widths.empty() || widths.back() != width) widths.push_back(width);
  }
  return widths;
}

double SweepPlan::flops_per_round() const {
  return flops_of_all(all_weights(*this), tokens);
}

std::int64_t SweepPlan::bytes(std::int64_t item_bytes) const {
  return center > 0 ? Operands::bytes(all_weights(*this), tokens, item_bytes) : 0;
}

SweepPlan mlp_width_sweep(const architecture::Config& config, std::int64_t tokens) {
  return {largest_width(config), tokens, [hidden = config.hidden_size](std::int64_t width) {
            return std::vector<Linear>{{2 * width, hidden}, {hidden, width}};
          }};
}

SweepPlan hidden_size_sweep(const architecture::Config& config, std::int64_t tokens) {
  architecture::Config widest = config;
  widest.blocks = {{}};
  if (const auto* attention = largest_attention(config)) widest.blocks.front().attention = *attention;
  if (const auto width = largest_width(config)) widest.blocks.front().mlp = architecture::DenseMlp{width};
  return {config.hidden_size, tokens, [widest](std::int64_t hidden) mutable {
            widest.hidden_size = hidden;
            std::vector<Linear> weights;
            for (const auto& product : products_of(widest, 1))
              if (product.blocks > 0) weights.push_back(product.weight);
            return weights;
          }};
}

Sweep measure(const SweepPlan& plan, at::ScalarType dtype, at::Device device, const Effort& effort,
              const std::function<void(double share)>& done) {
  Sweep sweep{.center = plan.center, .multiples = {}};
  const auto multiples = multiples_of_sweep(plan.center);
  if (multiples.empty()) return sweep;
  const auto rates =
      measure_values(widths_of(plan), plan.weights_of, plan.tokens, dtype, device, effort, done);
  auto rate = rates.begin();
  for (const auto multiple : multiples) {
    MultipleRate mean{.multiple = multiple, .flops_per_second = 0, .widths = {}};
    for (const auto width : widths_of_sweep(plan.center, multiple)) {
      mean.widths.push_back(width);
      mean.flops_per_second += (rate++)->flops_per_second;
    }
    mean.flops_per_second /= static_cast<double>(mean.widths.size());
    sweep.multiples.push_back(std::move(mean));
  }
  return sweep;
}

std::vector<ValueRate> measure_kv_groups(const architecture::Config& config, std::int64_t tokens,
                                         at::ScalarType dtype, at::Device device, const Effort& effort,
                                         const std::function<void(double share)>& done) {
  const auto* attention = largest_attention(config);
  if (!attention) return {};
  const auto all = attention->num_kv_heads, step = (all + kMostGroups - 1) / kMostGroups;
  std::vector<std::int64_t> counts;
  for (auto count = all; count > 0; count -= step) counts.insert(counts.begin(), count);
  const auto queries = attention->num_heads / all * attention->head_dim;  // of a group
  const auto weights_of = [&, hidden = config.hidden_size](std::int64_t count) {
    return std::vector<Linear>{{count * (queries + 2 * attention->head_dim), hidden},
                               {hidden, count * queries}};
  };
  return measure_values(counts, weights_of, tokens, dtype, device, effort, done);
}

std::vector<ValueRate> measure_head_dims(const architecture::Config& config, std::int64_t tokens,
                                         at::ScalarType dtype, at::Device device, const Effort& effort,
                                         const std::function<void(double share)>& done) {
  const auto* attention = largest_attention(config);
  if (!attention) return {};
  const auto width = attention->num_heads * attention->head_dim;
  const auto of_group = attention->num_heads / attention->num_kv_heads;
  std::vector<architecture::Attention> shapes;
  std::vector<Timed> works;
  for (const auto dim : kHeadDims) {
    const auto groups = std::max<std::int64_t>(1, (width + dim * of_group / 2) / (dim * of_group));
    shapes.push_back({groups * of_group, groups, dim});
    const HeadsWork work(shapes.back(), tokens, at::TensorOptions().dtype(dtype).device(device));
    works.push_back({[work] { work.run(); }});
  }
  time_in_turn(works, effort, device, done);
  std::vector<ValueRate> rates;
  for (std::size_t i = 0; i < shapes.size(); ++i)
    rates.push_back({shapes[i].head_dim, (attention_work(shapes[i], tokens).flops +
                                          attention_backward_work(shapes[i], tokens).flops) /
                                             works[i].seconds});
  return rates;
}

}  // namespace retort::bench
