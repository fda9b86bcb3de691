#include "retort/sparsify/sparsify.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <optional>

#include "retort/base/error.h"
#include "retort/base/machine.h"
#include "retort/record/keys.h"
#include "retort/sparsify/chosen_layers.h"
#include "retort/sparsify/damage.h"
#include "retort/sparsify/finished_blocks.h"
#include "retort/sparsify/layer.h"
#include "retort/sparsify/pass.h"
#include "retort/sparsify/plan.h"

namespace retort::sparsify {
namespace {

namespace keys = record::keys;

// The text as it passes the model.
struct Text {
  std::vector<calibrate::Batch> fitted, choosing, judging;
};

// What every step of the stage works on.
struct Work {
  const calibrate::TextParts& parts;
  const Text& text;
  const SparsifyOptions& options;
  base::Path hidden_scratch;  // for the hidden states of the text that is fitted to; empty: in memory
  record::Observer& observer;

  bool polishes() const { return options.polish && !text.choosing.empty(); }
};

// What making one layer sparse alone, in the model as it came, does.
struct LayerDamage {
  std::string name;
  Damage damage;
  double weights = 0;  // of the layer
  bool sparse = false;

  double per_weight() const { return damage.mean.objective / weights; }
};

Text text_of(const calibrate::TextParts& parts, const model::Weights& weights) {
  const auto batches = [&](const std::vector<calibrate::SourceText>& sources) {
    return sources.empty()
               ? std::vector<calibrate::Batch>()
               : calibrate::calibration_batches(sources, weights.config, weights.units.front().device());
  };
  return {batches(parts.fitted), batches(parts.choosing), batches(parts.judging)};
}

TextTokens tokens_of(const Text& text) {
  TextTokens tokens{.fitted = calibrate::num_tokens(text.fitted),
                    .choosing = calibrate::num_tokens(text.choosing),
                    .judging = calibrate::num_tokens(text.judging)};
  for (const auto* part : {&text.fitted, &text.choosing, &text.judging})
    for (const auto& batch : *part) tokens.batch = std::max(tokens.batch, batch.tokens());
  return tokens;
}

void warn_of_cut_documents(const calibrate::TextParts& parts, record::Observer& observer) {
  for (const auto& source : parts.cut)
    observer.message(
        record::Level::warning,
        base::join("sparsify: calibration text '", source,
                   "' has too few documents to fit to some and judge by others, so parts of one document "
                   "serve both and the damage looks smaller than it is; give the source a separator, or "
                   "raise calibration_tokens."));
}

struct Planned {
  std::int64_t bytes = 0;
  base::Path hidden_scratch;
};

// The text that is fitted to is most of it and is read from one end to the other: that waits on disk when
// memory alone does not suffice.
Planned plan(const model::Weights& weights, const Text& text, const SparsifyOptions& options,
             const SparsifyPlace& place, record::Observer& observer) {
  const auto tokens = tokens_of(text);
  const auto item = weights.item_bytes();
  auto plan = plan_sparsify(weights.config, item, tokens, options, false);
  const bool on_disk = place.memory > 0 && plan.total_bytes() > place.memory && !place.scratch.empty();
  if (on_disk) plan = plan_sparsify(weights.config, item, tokens, options, true);
  observer.message(record::Level::info, "sparsify: memory:\n" + shard::describe(plan));
  if (place.memory > 0) shard::require_fits(plan, place.memory);
  return {plan.total_bytes(), on_disk ? place.scratch : base::Path()};
}

base::Json to_json(const LayerDamage& layer, const std::vector<calibrate::SourceText>& sources) {
  auto json = to_json(layer.damage, sources);
  json[keys::kName] = layer.name;
  json[keys::kSparse] = layer.sparse;
  return json;
}

// The damage of each layer when it alone is sparse, in the model as it came.
std::vector<LayerDamage> measured_alone(const Work& work, model::Weights& weights, const ChosenLayers& chosen,
                                        FinishedBlocks& finished, double& seconds_before) {
  calibrate::Walk fitted(weights, work.text.fitted, work.hidden_scratch),
      choosing(weights, work.text.choosing);
  const DamageTest test(weights, work.text.choosing, work.options.objective);
  const auto visit = [&](const architecture::Tensor& layer, const LayerInputs& inputs) {
    const auto& unit_W = weights.units[weights.layout.find(layer.name)->unit];
    const auto dense_W = unit_W.clone();
    make_layer_sparse(weights, layer, inputs, work.options);
    const auto damage = test.measure(choosing);
    unit_W.copy_(dense_W);
    return to_json(LayerDamage{layer.name, damage}, work.parts.choosing);
  };
  const auto found =
      run_pass({.name = "measured",
                .progress = "sparsify: layers measured",
                .fitted = &fitted,
                .guard = work.polishes() ? &choosing : nullptr,
                .others = work.polishes() ? std::vector<calibrate::Walk*>{} : std::vector{&choosing},
                .visit = visit},
               weights, chosen, work.options, finished, work.observer);
  seconds_before += found.seconds_before;
  std::vector<LayerDamage> layers;
  for (const auto& block : found.blocks)
    for (const auto& row : block.layers) {
      const auto& name = row.at(keys::kName).get_ref<const std::string&>();
      layers.push_back({name, damage_from_json(row, work.parts.choosing),
                        static_cast<double>(weights.tensor(name).numel())});
    }
  return layers;
}

// Those with the least damage per weight are taken until they are the share that was asked for.
void choose_by_damage(std::vector<LayerDamage>& layers, ChosenLayers& chosen, double share) {
  std::stable_sort(layers.begin(), layers.end(),
                   [](const auto& a, const auto& b) { return a.per_weight() < b.per_weight(); });
  double weights = 0, taken = 0;
  for (const auto& layer : layers) weights += layer.weights;
  for (auto& layer : layers) {
    layer.sparse = taken + layer.weights <= share * weights;
    taken += layer.sparse ? layer.weights : 0;
    if (!layer.sparse) chosen.remove(layer.name);
  }
  base::require<base::UsageError>(chosen.count() > 0, "sparsify: share of ", share,
                                  " is less than the smallest of the chosen layers; give more.");
}

struct MadeSparse {
  std::vector<LayerResult> layers;
  std::vector<base::Json> cumulative;  // damage of all layers up to a block
};

MadeSparse make_sparse(const Work& work, model::Weights& weights, const ChosenLayers& chosen,
                       FinishedBlocks& finished, double& seconds_before) {
  calibrate::Walk fitted(weights, work.text.fitted, work.hidden_scratch), judging(weights, work.text.judging);
  std::optional<calibrate::Walk> guard;
  if (work.polishes()) guard.emplace(weights, work.text.choosing);
  std::optional<DamageTest> test;
  if (!work.text.judging.empty()) test.emplace(weights, work.text.judging, work.options.objective);
  const auto damage_after = [&](std::int64_t block) -> base::Json {
    if (!test || (work.options.share == 1 && block < chosen.last_block())) return nullptr;
    auto row = to_json(test->measure(judging), work.parts.judging);
    row[keys::kUpToBlock] = block;
    return row;
  };
  const auto found = run_pass({.name = "sparse",
                               .progress = "sparsify: layers",
                               .fitted = &fitted,
                               .guard = guard ? &*guard : nullptr,
                               .others = {&judging},
                               .changes_weights = true,
                               .visit =
                                   [&](const auto& layer, const auto& inputs) {
                                     return saved(make_layer_sparse(weights, layer, inputs, work.options));
                                   },
                               .end = damage_after},
                              weights, chosen, work.options, finished, work.observer);
  seconds_before += found.seconds_before;
  MadeSparse made;
  for (const auto& block : found.blocks) {
    for (const auto& layer : block.layers) made.layers.push_back(layer_from_json(layer));
    if (!block.end.is_null()) made.cumulative.push_back(block.end);
  }
  return made;
}

// In the order of the layout, those of earlier stages included.
void list_sparse_layers(model::Weights& weights, const ChosenLayers& chosen, const std::string& pattern) {
  std::vector<std::string> names;
  const auto& before = weights.lineage.sparse_layers;
  for (const auto& unit : weights.layout.units)
    for (const auto& tensor : unit.tensors)
      if (chosen.contains(tensor.name) ||
          std::find(before.begin(), before.end(), tensor.name) != before.end())
        names.push_back(tensor.name);
  weights.lineage.sparse_layers = std::move(names);
  weights.lineage.pattern = pattern;
}

// Lineage says where channels come from, in the order that they have now.
void list_moved_channels(model::Weights& weights, const std::vector<LayerResult>& layers) {
  for (const auto& layer : layers) {
    const auto place = weights.layout.find(layer.name);
    if (layer.order.empty() || weights.layout.at(*place).role != architecture::Role::down) continue;
    const auto block = static_cast<std::size_t>(weights.layout.units[place->unit].block_index);
    auto& channels = weights.lineage.kept.blocks[block].channels;
    const auto before = channels;
    for (std::size_t i = 0; i < channels.size(); ++i)
      channels[i] = before[static_cast<std::size_t>(layer.order[i])];
  }
}

double zeros_fraction(const model::Weights& weights, const std::vector<LayerResult>& layers) {
  std::int64_t zeros = 0, all = 0;
  for (const auto& layer : layers) {
    const auto values = weights.tensor(layer.name);
    zeros += values.eq(0).sum().item<std::int64_t>();
    all += values.numel();
  }
  return static_cast<double>(zeros) / static_cast<double>(all);
}

base::Json report_of(const Work& work, const model::Weights& weights, const MadeSparse& made) {
  base::Json layers = base::Json::array();
  for (const auto& layer : made.layers) layers.push_back(to_json(layer));
  return {{keys::kKind, "sparsify"},
          {keys::kPattern, work.options.pattern},
          {keys::kMethod, base::word(work.options.method)},
          {"calibration", calibrate::describe(work.parts)},
          {keys::kLayers, layers},
          {keys::kDamage, made.cumulative.empty() ? base::Json() : made.cumulative.back()},
          {keys::kZerosFraction, zeros_fraction(weights, made.layers)}};
}

}  // namespace

SparsifyResult sparsify(const model::Weights& input, const calibrate::TextParts& parts,
                        const SparsifyOptions& options, const SparsifyPlace& place,
                        record::Observer& observer) {
  const double start = base::monotonic_seconds();
  auto weights = model::converted(input, input.units.front().scalar_type());
  const auto text = text_of(parts, weights);
  ChosenLayers chosen(weights, options);
  base::ensure(options.share == 1 || !text.choosing.empty(), "some text is there to choose layers by");
  warn_of_cut_documents(parts, observer);
  const auto planned = plan(weights, text, options, place, observer);
  const Work work{parts, text, options, planned.hidden_scratch, observer};
  FinishedBlocks finished(place.scratch, place.identity);
  double seconds_before = 0;
  std::vector<LayerDamage> alone;
  if (options.share < 1) {
    alone = measured_alone(work, weights, chosen, finished, seconds_before);
    choose_by_damage(alone, chosen, options.share);
  }
  const auto made = make_sparse(work, weights, chosen, finished, seconds_before);
  list_sparse_layers(weights, chosen, options.pattern);
  list_moved_channels(weights, made.layers);
  model::check_pattern(weights);
  auto report = report_of(work, weights, made);
  report[keys::kMemoryPlannedBytes] = planned.bytes;
  report[keys::kSeconds] = seconds_before + base::monotonic_seconds() - start;
  if (options.share < 1) {
    report["share"] = options.share;
    report[keys::kCumulativeDamages] = made.cumulative;
    for (const auto& layer : alone) report[keys::kSingleDamages].push_back(to_json(layer, parts.choosing));
  }
  return {std::move(weights), std::move(report)};
}

SparsifyResult sparsify(const model::Weights& input, const std::vector<calibrate::SourceText>& sources,
                        const SparsifyOptions& options, record::Observer& observer) {
  return sparsify(input, calibrate::split_by_document(sources), options, {}, observer);
}

}  // namespace retort::sparsify
