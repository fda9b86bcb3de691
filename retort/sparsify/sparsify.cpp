#include "retort/sparsify/sparsify.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <set>

#include "retort/base/error.h"
#include "retort/base/units.h"
#include "retort/compress/options.h"
#include "retort/compress/polish.h"
#include "retort/compress/sparse_gpt.h"
#include "retort/model/dtype.h"
#include "retort/record/stopped.h"
#include "retort/sparsify/damage.h"
#include "retort/sparsify/finished_blocks.h"
#include "retort/sparsify/plan.h"

namespace retort::sparsify {
namespace {

using architecture::Role;
using model::Tap;

struct NamedRole {
  std::string name;
  Role role;
};
constexpr std::array kMethodNames = {"sparse_gpt", "wanda", "magnitude"};

const std::array<NamedRole, 7> kLinearLayers = {{{"q_proj", Role::query},
                                                 {"k_proj", Role::key},
                                                 {"v_proj", Role::value},
                                                 {"o_proj", Role::output},
                                                 {"gate_proj", Role::gate},
                                                 {"up_proj", Role::up},
                                                 {"down_proj", Role::down}}};

// Layers of one input share its Hessian and factor; in the order in which a block computes them.
struct LayerGroup {
  Tap tap;
  std::vector<Role> roles;
};
const std::array<LayerGroup, 4> kGroups = {{{Tap::qkv_input, {Role::query, Role::key, Role::value}},
                                            {Tap::output_input, {Role::output}},
                                            {Tap::gate_up_input, {Role::gate, Role::up}},
                                            {Tap::down_input, {Role::down}}}};

std::vector<Role> chosen_roles(const SparsifyOptions& options) {
  std::vector<Role> roles;
  if (options.layers.empty())
    for (const auto& layer : kLinearLayers) roles.push_back(layer.role);
  std::vector<std::string> names;
  for (const auto& layer : kLinearLayers) names.push_back(layer.name);
  for (const auto& name : options.layers) {
    const auto found = std::find(names.begin(), names.end(), name);
    const auto near = base::nearest(name, names);
    base::require<base::UsageError>(
        found != names.end(), "sparsify: layers: no linear layer is called '", name,
        near.empty() ? "'" : "', did you mean '" + near + "'",
        "; choose from q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, down_proj.");
    roles.push_back(kLinearLayers[static_cast<std::size_t>(found - names.begin())].role);
  }
  return roles;
}

std::vector<bool> chosen_blocks(const SparsifyOptions& options, std::size_t count) {
  std::vector<bool> chosen(count, options.blocks.empty());
  for (const auto block : options.blocks) {
    base::require<base::UsageError>(block >= 0 && block < static_cast<std::int64_t>(count),
                                    "sparsify: blocks: expected numbers from 0 to ", count - 1, ", found ",
                                    block, ".");
    chosen[static_cast<std::size_t>(block)] = true;
  }
  return chosen;
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// What a layer's inputs say: the Hessian that weights are fitted to, and one of other text.
struct Inputs {
  at::Tensor hessian_CC, guard_CC;  // the second only for polishing
};

// A part of the text on its way through the blocks.
struct Stream {
  std::vector<calibrate::Batch> batches;
  model::StoredTensors hidden = {};  // inputs of the block at hand

  void start(const model::Weights& weights) {
    for (std::size_t i = 0; i < batches.size(); ++i) hidden.set(i, calibrate::embedded(weights, batches[i]));
  }
  void advance(const model::Weights& weights, std::int64_t block) {
    const auto views = calibrate::weights_of_block(weights, block);
    for (std::size_t i = 0; i < batches.size(); ++i)
      hidden.set(i,
                 model::block_forward(views, weights.config.rms_norm_eps, hidden.get(i), batches[i].layout));
  }
};

std::int64_t tokens_of(const Stream& stream) {
  std::int64_t tokens = 0;
  for (const auto& batch : stream.batches) tokens += batch.layout.tokens();
  return tokens;
}

std::int64_t longest_batch(const Stream& stream) {
  std::int64_t longest = 0;
  for (const auto& batch : stream.batches) longest = std::max(longest, batch.layout.tokens());
  return longest;
}

Stream stream_of(const std::vector<calibrate::SourceText>& domains, const model::Weights& weights) {
  if (domains.empty()) return {};
  return {calibrate::calibration_batches(domains, weights.config, weights.units.front().device())};
}

class Sparsifier {
 public:
  Sparsifier(const model::Weights& input, const calibrate::TextParts& text, const SparsifyOptions& options,
             const SparsifyPlace& place, record::Observer& observer)
      : observer_(observer),
        options_(options),
        place_(place),
        sweep_{model::parse_pattern(options.pattern), options.block_size, options.dampening_fraction,
               options.mask},
        roles_(chosen_roles(options)),
        blocks_(chosen_blocks(options, input.config.blocks.size())),
        weights_(model::converted(input, input.units.front().scalar_type())),
        text_(text),
        fitted_(stream_of(text.fitted, weights_)),
        choosing_(stream_of(text.choosing, weights_)),
        judging_(stream_of(text.judging, weights_)),
        finished_(place.scratch, place.identity) {
    check_layers();
    base::ensure(options_.share == 1 || !choosing_.batches.empty(), "some text is there to choose layers by");
  }

  SparsifyResult run();

 private:
  bool is_chosen(const architecture::Unit& unit, const architecture::Tensor& tensor) const {
    return unit.block_index >= 0 && blocks_[static_cast<std::size_t>(unit.block_index)] &&
           std::find(roles_.begin(), roles_.end(), tensor.role) != roles_.end() &&
           !dense_.contains(tensor.name);
  }
  void check_layers();
  void plan_memory();
  std::int64_t last_block() const {  // that has chosen layers
    return std::find(blocks_.rbegin(), blocks_.rend(), true).base() - blocks_.begin() - 1;
  }
  bool polishes() const { return options_.polish && !choosing_.batches.empty(); }
  // Visits the chosen layers in order, block after block; what it finds of a block is kept on disk.
  struct Pass {
    const char *name, *progress;
    bool changes_weights;
    std::vector<Stream*> streams;  // that it needs
    /// What to report of a layer.
    std::function<base::Json(std::int64_t block, const architecture::Tensor& tensor, const Inputs& inputs,
                             const std::optional<calibrate::HessianFactor>& factor)>
        visit;
    /// What to report of a block, before the next one's inputs are computed.
    std::function<base::Json(std::int64_t block)> end;
  };
  std::vector<base::Json> run_pass(const Pass& pass);
  base::Json visit_block(const Pass& pass, std::int64_t block);
  void visit_group(const Pass& pass, std::int64_t block, const LayerGroup& group, base::Json& layers);
  calibrate::HessianSums sums(const Stream& stream, std::int64_t block, Tap tap) const;
  base::Json measured_alone(std::int64_t block, const architecture::Tensor& tensor, const Inputs& inputs,
                            const std::optional<calibrate::HessianFactor>& factor);
  void choose_by_damage();
  base::Json made_sparse(const architecture::Tensor& tensor, const Inputs& inputs,
                         const std::optional<calibrate::HessianFactor>& factor);
  base::Json damage_after(std::int64_t block) const;
  void make_sparse();
  at::Tensor sparse_weight(const at::Tensor& weight_RC, const architecture::Tensor& tensor,
                           const Inputs& inputs, const std::optional<calibrate::HessianFactor>& factor,
                           base::Json& layer) const;
  base::Json polish(const at::Tensor& weight_RC, const Inputs& inputs, compress::SparseResult& result) const;
  void list_sparse_layers();
  double zeros_fraction() const;

  record::Observer& observer_;
  const SparsifyOptions& options_;
  const SparsifyPlace& place_;
  compress::SweepOptions sweep_;
  std::vector<Role> roles_;
  std::vector<bool> blocks_;
  model::Weights weights_;
  const calibrate::TextParts& text_;
  Stream fitted_, choosing_, judging_;
  FinishedBlocks finished_;
  std::unique_ptr<DamageTest>
      damage_;                   // relative to the input, on the text that the pass at hand measures by
  std::set<std::string> dense_;  // names of layers that stay as they are, because they would suffer most
  base::Json layers_ = base::Json::array(), damages_ = base::Json::array(), cumulative_ = base::Json::array();
  std::int64_t chosen_ = 0, done_ = 0;  // layers, the second in the pass at hand
  std::int64_t planned_bytes_ = 0;
  double seconds_before_ = 0;  // spent by earlier runs on the blocks that were kept
};

// Every refusal comes before the first layer is touched.
void Sparsifier::check_layers() {
  const auto group = sweep_.pattern.group;
  base::require<base::UsageError>(sweep_.block_size > 0 && sweep_.block_size % group == 0,
                                  "sparsify: block_size: expected a multiple of ", group, ", found ",
                                  sweep_.block_size, "; 128 is usual.");
  base::require<base::UsageError>(sweep_.dampening_fraction > 0 && sweep_.dampening_fraction <= 1,
                                  "sparsify: dampening_fraction: expected above 0 and at most 1, found ",
                                  sweep_.dampening_fraction, "; 0.01 is usual.");
  const auto& lineage = weights_.lineage;
  base::require<base::UsageError>(lineage.sparse_layers.empty() || lineage.pattern == options_.pattern,
                                  "sparsify: the model already has layers with pattern ", lineage.pattern,
                                  ", found a recipe with ", options_.pattern, "; use one pattern.");
  for (const auto& unit : weights_.layout.units)
    for (const auto& tensor : unit.tensors) {
      if (!is_chosen(unit, tensor)) continue;
      ++chosen_;
      base::require<base::UsageError>(tensor.cols() % group == 0, "sparsify: ", tensor.name, " has ",
                                      tensor.cols(), " columns, expected a multiple of ", group,
                                      "; leave this layer out.");
    }
  base::require<base::UsageError>(
      chosen_ > 0, "sparsify: the chosen blocks have none of the chosen layers; choose others.");
}

// The text that is fitted to is most of it and is read from one end to the other: that waits on disk when
// memory alone does not suffice.
void Sparsifier::plan_memory() {
  const TextTokens text{
      tokens_of(fitted_), tokens_of(choosing_), tokens_of(judging_),
      std::max({longest_batch(fitted_), longest_batch(choosing_), longest_batch(judging_)})};
  const auto item = weights_.item_bytes();
  auto plan = plan_sparsify(weights_.config, item, text, options_, false);
  const bool on_disk = place_.memory > 0 && plan.total_bytes() > place_.memory && finished_.keep_any();
  if (on_disk) plan = plan_sparsify(weights_.config, item, text, options_, true);
  observer_.message(record::Level::info, "sparsify: memory:\n" + shard::describe(plan));
  if (place_.memory > 0) shard::require_fits(plan, place_.memory);
  planned_bytes_ = plan.total_bytes();
  if (on_disk) fitted_.hidden = model::StoredTensors(place_.scratch);
}

calibrate::HessianSums Sparsifier::sums(const Stream& stream, std::int64_t block, Tap tap) const {
  calibrate::HessianSums sums;
  const auto views = calibrate::weights_of_block(weights_, block);
  for (std::size_t i = 0; i < stream.batches.size(); ++i) {
    const auto& batch = stream.batches[i];
    const model::BlockHooks hooks{.tap = [&](Tap at, const at::Tensor& x_NC) {
      if (at == tap) calibrate::accumulate_hessian(sums, x_NC, batch.sequences);
    }};
    model::block_forward(views, weights_.config.rms_norm_eps, stream.hidden.get(i), batch.layout, nullptr,
                         &hooks);
  }
  return sums;
}

void Sparsifier::visit_group(const Pass& pass, std::int64_t block, const LayerGroup& group,
                             base::Json& layers) {
  const auto unit = static_cast<std::size_t>(architecture::Layout::block_unit(block));
  const auto& shape = weights_.layout.units[unit];
  std::vector<const architecture::Tensor*> tensors;
  for (const auto role : group.roles)
    if (const auto* tensor = shape.find(role); tensor && is_chosen(shape, *tensor)) tensors.push_back(tensor);
  if (tensors.empty()) return;
  record::stop_if_asked(observer_, "sparsify", block);
  const auto& first = tensors.front()->name;
  const Inputs inputs{
      calibrate::hessian_of(sums(fitted_, block, group.tap), first),
      polishes() ? calibrate::hessian_of(sums(choosing_, block, group.tap), first) : at::Tensor()};
  std::optional<calibrate::HessianFactor> factor;
  if (options_.method == compress::SparseMethod::sparse_gpt)
    factor = calibrate::factorise(inputs.hessian_CC, sweep_.dampening_fraction, first);
  if (factor && factor->dampening_fraction > sweep_.dampening_fraction)
    observer_.message(
        record::Level::warning,
        base::join(first, ": the Hessian needed a dampening of ", factor->dampening_fraction, " instead of ",
                   sweep_.dampening_fraction, "; more calibration text would help."));
  for (const auto* tensor : tensors) {
    layers.push_back(pass.visit(block, *tensor, inputs, factor));
    observer_.progress(pass.progress, ++done_, chosen_);
  }
}

base::Json Sparsifier::visit_block(const Pass& pass, std::int64_t block) {
  const auto start = std::chrono::steady_clock::now();
  base::Json found = {{"layers", base::Json::array()}, {"damage", nullptr}};
  if (blocks_[static_cast<std::size_t>(block)])
    for (const auto& group : kGroups) visit_group(pass, block, group, found["layers"]);
  if (pass.end) found["damage"] = pass.end(block);
  found["seconds"] = seconds_since(start);
  return found;
}

// What was found of each block, now or by an earlier run.  A block that goes on from kept ones gets the same
// inputs as if they had just been made, because weights and text are the same.
std::vector<base::Json> Sparsifier::run_pass(const Pass& pass) {
  for (auto* stream : pass.streams) stream->start(weights_);
  done_ = 0;
  std::vector<base::Json> blocks;
  for (std::int64_t block = 0, kept = 0; block <= last_block(); ++block) {
    const auto unit = static_cast<std::size_t>(architecture::Layout::block_unit(block));
    const bool changes = pass.changes_weights && blocks_[static_cast<std::size_t>(block)];
    const auto changed_W = changes ? weights_.units[unit] : at::Tensor();
    if (const auto before = finished_.read(pass.name, block, changed_W)) {
      seconds_before_ += before->at("seconds").get<double>();
      done_ += std::ssize(before->at("layers"));
      blocks.push_back(*before);
      ++kept;
    } else {
      if (kept > 0)
        observer_.message(record::Level::info,
                          base::join("sparsify: going on after block ", block - 1, ", ", pass.name));
      kept = 0;
      blocks.push_back(visit_block(pass, block));
      finished_.write(pass.name, block, blocks.back(), changed_W);
    }
    if (block < last_block())
      for (auto* stream : pass.streams) stream->advance(weights_, block);
  }
  return blocks;
}

// Each layer is made sparse alone, in the model as it came.
base::Json Sparsifier::measured_alone(std::int64_t block, const architecture::Tensor& tensor,
                                      const Inputs& inputs,
                                      const std::optional<calibrate::HessianFactor>& factor) {
  auto weight_RC = weights_.tensor(tensor.name);
  const auto dense_RC = weight_RC.clone();
  base::Json row;
  weight_RC.copy_(sparse_weight(weight_RC, tensor, inputs, factor, row));
  row = to_json(damage_->measure(weights_, block, choosing_.hidden), text_.choosing);
  weight_RC.copy_(dense_RC);
  row["name"] = tensor.name;
  return row;
}

// Those with the least damage per weight are taken until they are the share that was asked for.
void Sparsifier::choose_by_damage() {
  damage_ = std::make_unique<DamageTest>(weights_, choosing_.batches, options_.objective);
  const auto blocks =
      run_pass({.name = "measured",
                .progress = "sparsify: layers measured",
                .changes_weights = false,
                .streams = {&fitted_, &choosing_},
                .visit = [this](auto block, const auto& tensor, const auto& inputs,
                                const auto& factor) { return measured_alone(block, tensor, inputs, factor); },
                .end = {}});
  std::vector<base::Json> rows;
  for (const auto& block : blocks)
    rows.insert(rows.end(), block.at("layers").begin(), block.at("layers").end());
  const auto size = [&](const base::Json& row) {
    return static_cast<double>(weights_.tensor(row.at("name").get<std::string>()).numel());
  };
  std::stable_sort(rows.begin(), rows.end(), [&](const auto& a, const auto& b) {
    return a.at("objective").template get<double>() / size(a) <
           b.at("objective").template get<double>() / size(b);
  });
  double weights = 0, taken = 0;
  for (const auto& row : rows) weights += size(row);
  for (auto& row : rows) {
    const bool sparse = taken + size(row) <= options_.share * weights;
    taken += sparse ? size(row) : 0;
    if (!sparse) dense_.insert(row.at("name").get<std::string>());
    row["sparse"] = sparse;
    damages_.push_back(std::move(row));
  }
  chosen_ -= std::ssize(dense_);
  base::require<base::UsageError>(chosen_ > 0, "sparsify: share of ", options_.share,
                                  " is less than the smallest of the chosen layers; give more.");
}

// What follows shall see the values that the file will hold.
at::Tensor Sparsifier::sparse_weight(const at::Tensor& weight_RC, const architecture::Tensor& tensor,
                                     const Inputs& inputs,
                                     const std::optional<calibrate::HessianFactor>& factor,
                                     base::Json& layer) const {
  auto result = factor ? compress::sparsify_weight(weight_RC, inputs.hessian_CC, *factor, sweep_, tensor.name)
                       : compress::mask_weight(weight_RC, inputs.hessian_CC, options_.method, sweep_.pattern,
                                               tensor.name);
  layer["loss"] = result.loss;
  if (factor) {
    layer["dampening"] = result.dampening_fraction;
    layer["identity_residual"] = result.identity_residual;
  }
  if (polishes()) layer["polish"] = polish(weight_RC, inputs, result);
  layer["relative_error"] = result.relative_error;
  const auto saved_RC = result.weight_RC.to(model::scalar_type(weights_.file_dtype));
  base::require<base::ValidationError>(
      saved_RC.isfinite().all().item<bool>() && model::holds(sweep_.pattern, saved_RC), tensor.name,
      ": is not finite or not ", options_.pattern, " after the cast to the file's type; nothing was saved.");
  return saved_RC;
}

// Keeps the polished weights only if they err less on text that they were not fitted to.
base::Json Sparsifier::polish(const at::Tensor& weight_RC, const Inputs& inputs,
                              compress::SparseResult& result) const {
  const auto type = inputs.hessian_CC.scalar_type();
  const auto original_RC = weight_RC.to(type);
  const auto polished = compress::least_squares_polish(original_RC, result.weight_RC.to(type), result.mask_RC,
                                                       inputs.hessian_CC);
  const auto guard_error = [&](const at::Tensor& sparse_RC) {
    return compress::relative_output_error(original_RC, sparse_RC.to(type), inputs.guard_CC);
  };
  const double before = guard_error(result.weight_RC), after = guard_error(polished.weight_RC);
  if (after < before) {
    result.weight_RC = polished.weight_RC.to(weight_RC.scalar_type());
    result.relative_error =
        compress::relative_output_error(original_RC, polished.weight_RC, inputs.hessian_CC);
  }
  return {{"kept", after < before},
          {"held_out_error_before", before},
          {"held_out_error_after", after},
          {"iterations", polished.iterations}};
}

// In the order of the layout, those of earlier stages included.
void Sparsifier::list_sparse_layers() {
  std::vector<std::string> names;
  const auto& before = weights_.lineage.sparse_layers;
  for (const auto& unit : weights_.layout.units)
    for (const auto& tensor : unit.tensors)
      if (is_chosen(unit, tensor) || std::find(before.begin(), before.end(), tensor.name) != before.end())
        names.push_back(tensor.name);
  weights_.lineage.sparse_layers = std::move(names);
  weights_.lineage.pattern = options_.pattern;
}

double Sparsifier::zeros_fraction() const {
  std::int64_t zeros = 0, all = 0;
  for (const auto& layer : layers_) {
    const auto values = weights_.tensor(layer["name"].get<std::string>());
    zeros += values.eq(0).sum().item<std::int64_t>();
    all += values.numel();
  }
  return static_cast<double>(zeros) / static_cast<double>(all);
}

base::Json Sparsifier::made_sparse(const architecture::Tensor& tensor, const Inputs& inputs,
                                   const std::optional<calibrate::HessianFactor>& factor) {
  const auto start = std::chrono::steady_clock::now();
  base::Json layer = {{"name", tensor.name}, {"rows", tensor.rows()}, {"cols", tensor.cols()}};
  auto weight_RC = weights_.tensor(tensor.name);
  weight_RC.copy_(sparse_weight(weight_RC, tensor, inputs, factor, layer));
  layer["seconds"] = seconds_since(start);
  return layer;
}

// Null where it is not measured.
base::Json Sparsifier::damage_after(std::int64_t block) const {
  if (!damage_ || (options_.share == 1 && block < last_block())) return nullptr;
  auto row = to_json(damage_->measure(weights_, block, judging_.hidden), text_.judging);
  row["up_to_block"] = block;
  return row;
}

void Sparsifier::make_sparse() {
  damage_.reset();
  if (!judging_.batches.empty())
    damage_ = std::make_unique<DamageTest>(weights_, judging_.batches, options_.objective);
  std::vector<Stream*> streams = {&fitted_, &judging_};
  if (polishes()) streams.push_back(&choosing_);
  const auto blocks =
      run_pass({.name = "sparse",
                .progress = "sparsify: layers",
                .changes_weights = true,
                .streams = streams,
                .visit = [this](auto, const auto& tensor, const auto& inputs,
                                const auto& factor) { return made_sparse(tensor, inputs, factor); },
                .end = [this](auto block) { return damage_after(block); }});
  for (const auto& block : blocks) {
    for (const auto& layer : block.at("layers")) layers_.push_back(layer);
    if (!block.at("damage").is_null()) cumulative_.push_back(block.at("damage"));
  }
}

SparsifyResult Sparsifier::run() {
  const auto start = std::chrono::steady_clock::now();
  for (const auto& domain : text_.cut)
    observer_.message(
        record::Level::warning,
        base::join("sparsify: calibration text '", domain,
                   "' has too few documents to fit to some and judge by others, so parts of one document "
                   "serve both and the damage looks smaller than it is; give the source a separator, or "
                   "raise calibration_tokens."));
  plan_memory();
  if (options_.share < 1) choose_by_damage();
  make_sparse();
  list_sparse_layers();
  model::check_pattern(weights_);
  SparsifyResult result;
  result.report = {{"kind", "sparsify"},
                   {"pattern", options_.pattern},
                   {"method", kMethodNames[static_cast<std::size_t>(options_.method)]},
                   {"calibration", describe(text_)},
                   {"memory_planned_bytes", planned_bytes_},
                   {"layers", layers_},
                   {"damage", cumulative_.empty() ? base::Json() : cumulative_.back()},
                   {"zeros_fraction", zeros_fraction()},
                   {"seconds", seconds_before_ + seconds_since(start)}};
  if (options_.share < 1) {
    result.report["share"] = options_.share;
    result.report["single_damages"] = damages_;
    result.report["cumulative_damages"] = cumulative_;
  }
  result.weights = std::move(weights_);
  return result;
}

}  // namespace

SparsifyResult sparsify(const model::Weights& input, const calibrate::TextParts& text,
                        const SparsifyOptions& options, const SparsifyPlace& place,
                        record::Observer& observer) {
  return Sparsifier(input, text, options, place, observer).run();
}

SparsifyResult sparsify(const model::Weights& input, const std::vector<calibrate::SourceText>& domains,
                        const SparsifyOptions& options, record::Observer& observer) {
  return sparsify(input, calibrate::split_by_document(domains), options, {}, observer);
}

}  // namespace retort::sparsify
