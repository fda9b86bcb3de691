#include "retort/eval/speed_table.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <limits>
#include <set>

#include "retort/architecture/layout.h"
#include "retort/base/error.h"
#include "retort/base/hash.h"
#include "retort/bench/operands.h"
#include "retort/bench/stopwatch.h"
#include "retort/eval/score.h"
#include "retort/model/block.h"
#include "retort/model/dtype.h"
#include "retort/record/keys.h"

namespace retort::eval {
namespace {

namespace keys = record::keys;

constexpr std::int64_t kHeadRows = 256;
constexpr std::int64_t kItemBytes = 2;  // a cost is that of a model in bfloat16, whatever was timed

std::string head_name(const architecture::Config& model) {
  return base::join("head ", model.vocab_size, " x ", model.hidden_size);
}

std::string block_name(const architecture::Config& model, const architecture::Block& block) {
  std::string name = base::join("block of ", model.hidden_size);
  if (block.attention)
    name += base::join(", ", block.attention->num_heads, "/", block.attention->num_kv_heads, " heads of ",
                       block.attention->head_dim);
  if (block.attention && block.attention->kind.window)
    name += base::join(", window of ", *block.attention->kind.window);
  if (const auto width = architecture::mlp_width(block)) name += base::join(", MLP of ", width);
  return name;
}

// A part with weights and input, ready to run.
struct Rehearsal {
  std::function<void()> run;
  double seconds = std::numeric_limits<double>::infinity();
};

// As large as weights are, so that no exponential of them overflows.
at::Tensor ordinary_numbers(std::int64_t count, const SpeedOptions& options) {
  return bench::irregular(count, at::TensorOptions().dtype(options.dtype).device(options.device)).mul_(0.05);
}

at::Tensor hidden_states(const architecture::Config& model, const SpeedOptions& options) {
  const auto tokens = options.batch * options.context;
  return ordinary_numbers(tokens * model.hidden_size, options).view({tokens, model.hidden_size});
}

architecture::Config with_block(architecture::Config model, const architecture::Block& block) {
  model.blocks = {block};
  return model;
}

// `flat` is as long as the largest unit; all parts are views of it.
Rehearsal block_part(const architecture::Config& model, const at::Tensor& flat, const SpeedOptions& options) {
  std::vector<std::int64_t> starts;
  for (std::int64_t sequence = 0; sequence <= options.batch; ++sequence)
    starts.push_back(sequence * options.context);
  const auto unit = architecture::make_layout(model).units[1];
  return {[views = model::block_weights(model.blocks.front(), unit, flat.narrow(0, 0, unit.size)),
           layout = model::make_token_layout(model, starts, options.device), eps = model.rms_norm_eps,
           x_ND = hidden_states(model, options)] { model::block_forward(views, eps, x_ND, layout); }};
}

Rehearsal head_part(const architecture::Config& model, const at::Tensor& flat, const SpeedOptions& options) {
  const auto layout = architecture::make_layout(model);
  const auto& unit = layout.units[static_cast<std::size_t>(layout.head_unit())];
  return {
      [head = HeadScorer(model, layout, flat.narrow(0, 0, unit.size)), x_ND = hidden_states(model, options)] {
        for (const auto& rows_RD : x_ND.split(kHeadRows)) head.logits(rows_RD);
      }};
}

// Each part of the models once, with a model that has no other block.
template <typename OnHead, typename OnBlock>
void for_each_part(std::span<const architecture::Config> models, OnHead on_head, OnBlock on_block) {
  std::set<std::string> known;
  for (const auto& model : models) {
    if (const auto name = head_name(model); known.insert(name).second) on_head(name, model);
    for (const auto& block : model.blocks)
      if (const auto name = block_name(model, block); known.insert(name).second)
        on_block(name, with_block(model, block));
  }
}

// Of any unit of the models.
std::int64_t largest_unit(std::span<const architecture::Config> models) {
  std::int64_t largest = 0;
  for (const auto& model : models)
    for (const auto& unit : architecture::make_layout(model).units) largest = std::max(largest, unit.size);
  return largest;
}

}  // namespace

SpeedTable SpeedTable::measured(std::span<const architecture::Config> models, const SpeedOptions& options) {
  const auto flat = ordinary_numbers(largest_unit(models), options);
  std::map<std::string, Rehearsal> parts;
  for_each_part(
      models,
      [&](const std::string& name, const auto& model) { parts[name] = head_part(model, flat, options); },
      [&](const std::string& name, const auto& model) { parts[name] = block_part(model, flat, options); });
  for (const auto& [name, part] : parts) part.run();  // first calls allocate and choose kernels
  for (std::int64_t round = 0; round < options.rounds; ++round)
    for (auto& [name, part] : parts) {
      const bench::Stopwatch watch(options.device);
      part.run();
      part.seconds = std::min(part.seconds, watch.seconds());
    }
  SpeedTable table;
  table.options_ = options;
  for (const auto& [name, part] : parts) table.seconds_[name] = part.seconds;
  return table;
}

double SpeedTable::seconds(const architecture::Config& model) const {
  const auto of = [&](const std::string& name) {
    const auto found = seconds_.find(name);
    base::ensure(found != seconds_.end(), "every part was measured");
    return found->second;
  };
  double sum = of(head_name(model));
  for (const auto& block : model.blocks) sum += of(block_name(model, block));
  return sum;
}

ModelCost SpeedTable::cost(const architecture::Config& model) const {
  return {architecture::cost_of(model, options_.context, options_.batch, kItemBytes), seconds(model)};
}

base::Json to_json(const ModelCost& cost) {
  return {{keys::kParameters, cost.counted.parameters},
          {keys::kActiveParameters, cost.counted.active_parameters},
          {keys::kBytes, cost.counted.bytes},
          {keys::kFlopsPerToken, cost.counted.flops},
          {keys::kSeconds, cost.seconds}};
}

base::Json SpeedTable::to_json() const {
  const base::Json conditions = {{"context", options_.context},
                                 {"batch", options_.batch},
                                 {keys::kDtype, model::dtype_name(options_.dtype)},
                                 {"rounds", options_.rounds},
                                 {"device", options_.device.str()},
                                 {"threads", at::get_num_threads()}};
  base::Json json = {{keys::kConditions, conditions}, {"seconds", seconds_}};
  const std::string text = json.dump();
  base::Hasher hasher;
  hasher.update(text.data(), text.size());
  json["hash"] = hasher.hex();
  return json;
}

}  // namespace retort::eval
