#include "retort/sparsify/sparsify.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <iomanip>
#include <optional>

#include "retort/base/error.h"
#include "retort/base/machine.h"
#include "retort/calibrate/enough_text.h"
#include "retort/record/keys.h"
#include "retort/sparsify/chosen_layers.h"
#include "retort/sparsify/damage.h"
#include "retort/sparsify/finished_blocks.h"
#include "retort/sparsify/layer.h"
#include "retort/sparsify/pass.h"
#include "retort/sparsify/plan.h"
#include "retort/sparsify/shared_model.h"

namespace retort::sparsify {
namespace {

namespace keys = record::keys;

// A rank's part of the text as it passes the model.
struct Text {
  std::vector<calibrate::Batch> fitted, choosing, judging;
};

// What every step of the stage works on.
struct Work {
  const calibrate::TextSplit& split;
  std::vector<std::string> source_names;
  const Text& text;
  const SparsifyOptions& options;
  base::Path hidden_scratch;  // for the hidden states of the text that is fitted to; empty: in memory
  record::Observer& observer;

  bool polishes() const { return options.polish && !split.choosing.empty(); }
};

std::vector<std::string> names_of(const std::vector<calibrate::SourceText>& sources) {
  std::vector<std::string> names;
  for (const auto& source : sources) names.push_back(source.name);
  return names;
}

Text text_of(const calibrate::TextSplit& split, const SharedModel& model) {
  const auto& weights = model.weights();
  const auto batches = [&](const std::vector<calibrate::SourceText>& sources) {
    return sources.empty() ? std::vector<calibrate::Batch>()
                           : calibrate::batches_of_rank(sources, weights.config, weights.options().device(),
                                                        model.group().rank(), model.group().size());
  };
  return {batches(split.fitted), batches(split.choosing), batches(split.judging)};
}

TextTokens tokens_of(const Text& text) {
  TextTokens tokens{.fitted = calibrate::num_tokens(text.fitted),
                    .choosing = calibrate::num_tokens(text.choosing),
                    .judging = calibrate::num_tokens(text.judging)};
  for (const auto* side : {&text.fitted, &text.choosing, &text.judging})
    for (const auto& batch : *side) tokens.batch = std::max(tokens.batch, batch.tokens());
  return tokens;
}

// The largest part of each side that a rank has.
TextTokens most_of_ranks(comm::Group& group, const TextTokens& own) {
  TextTokens most;
  for (const auto& of_rank : group.all_values(own)) {
    most.fitted = std::max(most.fitted, of_rank.fitted);
    most.choosing = std::max(most.choosing, of_rank.choosing);
    most.judging = std::max(most.judging, of_rank.judging);
    most.batch = std::max(most.batch, of_rank.batch);
  }
  return most;
}

void warn_of_cut_documents(const calibrate::TextSplit& split, record::Observer& observer) {
  for (const auto& warning :
       calibrate::warnings_of_cut(split, "sparsify", "the damage looks smaller than it is"))
    observer.message(record::Level::warning, warning);
}

void warn_of_little_text(const calibrate::TextSplit& split, const architecture::Config& config,
                         const SparsifyOptions& options, record::Observer& observer) {
  auto enough = options;
  enough.calibration_tokens = 0;
  const auto warning =
      calibrate::warning_of_little_text({.stage = "sparsify",
                                         .consequence = "the model will lose more than it has to",
                                         .tokens = calibrate::num_tokens(split.fitted),
                                         .inputs = widest_fitted(config, options)},
                                        calibration_tokens_of(config, enough));
  if (warning) observer.message(record::Level::warning, *warning);
}

struct Planned {
  std::int64_t bytes = 0;
  base::Path hidden_scratch;
};

// The text that is fitted to is most of it and is read from one end to the other: that waits on disk when
// memory alone does not suffice.
Planned plan(const model::Weights& weights, const TextTokens& tokens, const SparsifyOptions& options,
             const SparsifyPlace& place, record::Observer& observer) {
  const auto planned = [&](bool on_disk) {
    return plan_sparsify(weights.config, weights.item_bytes(), tokens, options, on_disk,
                         weights.offload != nullptr, ops::path_of(weights.options().device()));
  };
  auto plan = planned(false);
  const bool on_disk = place.memory > 0 && plan.total_bytes() > place.memory && !place.scratch.empty();
  if (on_disk) plan = planned(true);
  observer.message(record::Level::info, "sparsify: memory:\n" + shard::describe(plan));
  if (place.memory > 0) shard::require_fits(plan, place.memory);
  return {plan.total_bytes(), on_disk ? place.scratch : base::Path()};
}

// The damage of each layer when it alone is sparse, in the model as it came.
std::vector<LayerDamage> measured_alone(const Work& work, SharedModel& model, const ChosenLayers& chosen,
                                        FinishedBlocks& finished, double& seconds_before) {
  const auto& weights = model.weights();
  calibrate::Walk fitted(weights, work.text.fitted, work.hidden_scratch),
      choosing(weights, work.text.choosing);
  const DamageTest test(weights, work.text.choosing, work.options.objective, model.group(),
                        calibrate::KlOver::top_k);
  const auto visit = [&](const architecture::Tensor& layer, const LayerInputs& inputs) {
    const auto unit = weights.layout.find(layer.name)->unit;
    const auto dense_W = model.copy_to_write(unit);
    make_layer_sparse(model, layer, inputs, work.options);
    auto damage = test.measure(choosing);
    model.change([&](model::Weights& changed) { changed.units[unit].copy_(dense_W); });
    return LayerDamage{.name = layer.name, .damage = std::move(damage)};
  };
  PassText text{.fitted = &fitted, .others = {}};
  if (work.polishes())
    text.guard = &choosing;
  else
    text.others = {&choosing};
  auto found = run_pass<LayerDamage>(
      {.name = "measured", .progress = "sparsify: layers measured", .text = text, .visit = visit}, model,
      chosen, work.options, finished, work.observer);
  seconds_before += found.seconds_before;
  std::vector<LayerDamage> layers;
  for (auto& block : found.blocks)
    for (auto& layer : block.layers) layers.push_back(std::move(layer));
  return layers;
}

// Those with the least damage per weight are taken until they are the share that was asked for.
void choose_by_damage(std::vector<LayerDamage>& layers, const model::Weights& weights, ChosenLayers& chosen,
                      double share) {
  const auto size = [&](const LayerDamage& layer) {
    return static_cast<double>(weights.tensor(layer.name).numel());
  };
  const auto per_weight = [&](const LayerDamage& layer) { return layer.damage.mean.objective / size(layer); };
  std::stable_sort(layers.begin(), layers.end(),
                   [&](const auto& a, const auto& b) { return per_weight(a) < per_weight(b); });
  double all = 0, taken = 0;
  for (const auto& layer : layers) all += size(layer);
  for (auto& layer : layers) {
    layer.sparse = taken + size(layer) <= share * all;
    taken += layer.sparse ? size(layer) : 0;
    if (!layer.sparse) chosen.remove(layer.name);
  }
  base::require<base::UsageError>(chosen.count() > 0, "sparsify: share of ", share,
                                  " is less than the smallest of the chosen layers; give more.");
}

struct MadeSparse {
  std::vector<LayerResult> layers;
  std::vector<CumulativeDamage> cumulative;
};

MadeSparse make_sparse(const Work& work, SharedModel& model, const ChosenLayers& chosen,
                       FinishedBlocks& finished, double& seconds_before) {
  const auto& weights = model.weights();
  calibrate::Walk fitted(weights, work.text.fitted, work.hidden_scratch), judging(weights, work.text.judging);
  std::optional<calibrate::Walk> guard;
  if (work.polishes()) guard.emplace(weights, work.text.choosing);
  std::optional<DamageTest> test;
  if (!work.split.judging.empty())
    test.emplace(weights, work.text.judging, work.options.objective, model.group());
  const auto damage_after = [&](std::int64_t block) -> std::optional<CumulativeDamage> {
    if (!test || (work.options.share == 1 && block < chosen.last_block())) return {};
    return CumulativeDamage{.up_to_block = block, .damage = test->measure(judging)};
  };
  const PassText text{
      .fitted = &fitted, .guard = guard ? &*guard : nullptr, .others = {&judging}, .weights_change = true};
  auto found = run_pass<LayerResult>(
      {.name = "sparse",
       .progress = "sparsify: layers",
       .text = text,
       .visit = [&](const auto& layer,
                    const auto& inputs) { return make_layer_sparse(model, layer, inputs, work.options); },
       .end = damage_after},
      model, chosen, work.options, finished, work.observer);
  seconds_before += found.seconds_before;
  MadeSparse made;
  for (auto& block : found.blocks) {
    for (auto& layer : block.layers) made.layers.push_back(std::move(layer));
    if (block.damage) made.cumulative.push_back(std::move(*block.damage));
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
  const auto damage =
      made.cumulative.empty() ? base::Json() : to_json(made.cumulative.back(), work.source_names);
  return {{keys::kKind, "sparsify"},
          {keys::kPattern, work.options.pattern},
          {keys::kMethod, base::word(work.options.method)},
          {"calibration", calibrate::describe(work.split)},
          {keys::kLayers, layers},
          {keys::kDamage, damage},
          {keys::kZerosFraction, zeros_fraction(weights, made.layers)}};
}

// What it costs, where some text was left to judge by.
void say_damage(const MadeSparse& made, record::Observer& observer) {
  if (made.cumulative.empty()) return;
  const auto& damage = made.cumulative.back().damage;
  const auto range = damage.interval ? base::join(std::fixed, std::setprecision(4), ", ",
                                                  damage.interval->low, " to ", damage.interval->high)
                                     : std::string();
  observer.message(record::Level::info,
                   base::join("sparsify: ", made.layers.size(), " layers are sparse, loss increase ",
                              std::fixed, std::setprecision(4), damage.mean.objective, " nats/token", range));
}

void report_choice(const Work& work, const std::vector<LayerDamage>& alone, const MadeSparse& made,
                   base::Json& report) {
  const auto rows = [&](const auto& damages) {
    base::Json json = base::Json::array();
    for (const auto& damage : damages) json.push_back(to_json(damage, work.source_names));
    return json;
  };
  report["share"] = work.options.share;
  report[keys::kCumulativeDamages] = rows(made.cumulative);
  report[keys::kSingleDamages] = rows(alone);
}

}  // namespace

SparsifyResult sparsify(model::Weights&& weights, const calibrate::TextSplit& split,
                        const SparsifyOptions& options, const SparsifyPlace& place,
                        record::Observer& observer) {
  const double start = base::monotonic_seconds();
  const auto alone_group = place.group ? nullptr : comm::single_group();
  auto& group = place.group ? *place.group : *alone_group;
  SharedModel model(std::move(weights), place.writes, group);
  Text text;
  std::optional<ChosenLayers> chosen;
  group.agree([&] {
    text = text_of(split, model);
    chosen.emplace(model.weights(), options);
  });
  base::ensure(options.share == 1 || !split.choosing.empty(), "some text is there to choose layers by");
  warn_of_cut_documents(split, observer);
  warn_of_little_text(split, model.weights().config, options, observer);
  const auto tokens = most_of_ranks(group, tokens_of(text));
  Planned planned;
  group.agree([&] { planned = plan(model.weights(), tokens, options, place, observer); });
  const Work work{split, names_of(split.fitted), text, options, planned.hidden_scratch, observer};
  FinishedBlocks finished(place.scratch, place.identity, work.source_names, group);
  double seconds_before = 0;
  std::vector<LayerDamage> alone;
  if (options.share < 1) {
    alone = measured_alone(work, model, *chosen, finished, seconds_before);
    group.together([&] { choose_by_damage(alone, model.weights(), *chosen, options.share); });
  }
  const auto made = make_sparse(work, model, *chosen, finished, seconds_before);
  say_damage(made, observer);
  auto result = std::move(model).taken();
  list_sparse_layers(result, *chosen, options.pattern);
  list_moved_channels(result, made.layers);
  group.together([&] { model::check_pattern(result); });
  auto report = report_of(work, result, made);
  report[keys::kMemoryPlannedBytes] = planned.bytes;
  report[keys::kSeconds] = seconds_before + base::monotonic_seconds() - start;
  if (options.share < 1) report_choice(work, alone, made, report);
  return {std::move(result), std::move(report)};
}

SparsifyResult sparsify(const model::Weights& input, const calibrate::TextSplit& split,
                        const SparsifyOptions& options, const SparsifyPlace& place,
                        record::Observer& observer) {
  return sparsify(model::converted(input, input.units.front().scalar_type()), split, options, place,
                  observer);
}

SparsifyResult sparsify(const model::Weights& input, const std::vector<calibrate::SourceText>& sources,
                        const SparsifyOptions& options, record::Observer& observer) {
  return sparsify(input, calibrate::split_by_document(sources), options, {}, observer);
}

}  // namespace retort::sparsify
