#include "retort/sparsify/sparsify.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <stdexcept>

#include "retort/architecture/counts.h"
#include "retort/base/error.h"
#include "retort/model/forward.h"
#include "retort/model/sparsity.h"
#include "retort/ops/tensor_allocator.h"
#include "retort/prune/searched.h"
#include "retort/record/stopped.h"
#include "retort/sparsify/damage.h"
#include "retort/sparsify/plan.h"
#include "support/json_for_tests.h"
#include "support/models_for_tests.h"
#include "support/outside_data.h"
#include "support/random_text.h"
#include "support/stepwise_options.h"
#include "support/temporary_directory.h"

namespace retort {
namespace {

using sparsify::sparsify;
using sparsify::SparsifyOptions;

model::Weights dense_model() {
  return test::tiny_model(test::tiny_config());
}

base::Json find_layer(const base::Json& report, const std::string& name) {
  for (const auto& layer : report["layers"])
    if (layer["name"] == name) return layer;
  ADD_FAILURE() << "no layer " << name;
  return {};
}

TEST(Sparsify, AgreesWithTheReferenceOnAWholeModel) {
  record::Observer observer;
  const auto oracles = test::oracles("prune");
  const auto input = model::load_weights(oracles / "model", at::kDouble, at::kCPU);
  std::vector<calibrate::SourceText> domains = {{"text", {}}};
  for (const auto& ids : test::read_json(oracles / "sequences.json")) {
    data::Sequence sequence{
        .ids = ids.get<std::vector<std::int32_t>>(), .targets = {}, .starts = {0}, .number = 0};
    sequence.targets = sequence.ids;
    domains[0].sequences.push_back(std::move(sequence));
  }
  const auto result = sparsify(input, {.fitted = domains, .choosing = {}, .judging = {}},
                               {.method = compress::SparseMethod::sparse_gpt,
                                .permute = false,
                                .polish = false,
                                .objective = {},
                                .layers = {},
                                .blocks = {}},
                               {}, observer);
  const auto expected = model::load_weights(oracles / "sparsified", at::kDouble, at::kCPU);
  for (const auto& unit : expected.layout.units)
    for (const auto& tensor : unit.tensors) {
      const auto ours = result.weights.tensor(tensor.name), theirs = expected.tensor(tensor.name);
      EXPECT_TRUE(at::equal(ours.ne(0), theirs.ne(0))) << tensor.name;
      EXPECT_LT(test::largest_difference(ours, theirs), 1e-4) << tensor.name;
    }
  EXPECT_EQ(result.report["layers"].size(), 3u * 7);
}

TEST(Sparsify, EveryLinearLayerIsSparseAndTheRestUntouched) {
  record::Observer observer;
  const auto input = dense_model();
  const auto before = model::converted(input, at::kDouble);
  const auto result = sparsify(input, test::random_domains(40), {}, observer);
  EXPECT_EQ(result.weights.lineage.sparse_layers.size(), 3u * 7);
  EXPECT_EQ(result.weights.lineage.pattern, "2:4");
  EXPECT_NO_THROW(model::check_pattern(result.weights));
  for (const auto& unit : input.layout.units)
    for (const auto& tensor : unit.tensors) {
      const auto now = result.weights.tensor(tensor.name);
      const bool linear = unit.block_index >= 0 && !architecture::is_norm(tensor.role);
      if (linear)
        EXPECT_EQ(now.eq(0).sum().item<std::int64_t>(), tensor.numel / 2) << tensor.name;
      else
        EXPECT_TRUE(at::equal(now, input.tensor(tensor.name))) << tensor.name;
      EXPECT_TRUE(at::equal(input.tensor(tensor.name), before.tensor(tensor.name))) << "the input changed";
    }
}

TEST(Sparsify, ReportsEachLayer) {
  record::Observer observer;
  SparsifyOptions options;
  options.method = compress::SparseMethod::sparse_gpt;
  const auto report = sparsify(dense_model(), test::random_domains(40), options, observer).report;
  EXPECT_EQ(report["kind"], "sparsify");
  EXPECT_EQ(report["pattern"], "2:4");
  EXPECT_DOUBLE_EQ(report["zeros_fraction"].get<double>(), 0.5);
  const auto layer = find_layer(report, "model.layers.1.mlp.down_proj.weight");
  EXPECT_EQ(report["calibration"]["second"]["fitted"], (base::Json{{"tokens", 48}, {"documents", 4}}));
  EXPECT_EQ(report["calibration"]["second"]["judging"], (base::Json{{"tokens", 12}, {"documents", 1}}));
  EXPECT_EQ(layer["rows"], 16);
  EXPECT_EQ(layer["cols"], 16);
  EXPECT_EQ(layer["dampening"], 0.01);
  EXPECT_LT(layer["identity_residual"].get<double>(), 1e-9);
  EXPECT_GT(layer["relative_error"].get<double>(), 0.01);
  EXPECT_LT(layer["relative_error"].get<double>(), 1);
}

TEST(Sparsify, EveryMethodKeepsThePatternAndSaysWhatItDid) {
  record::Observer observer;
  SparsifyOptions options;
  options.method = compress::SparseMethod::sparse_gpt;
  options.polish = false;
  const auto first_layer = [&] {
    const auto result = sparsify(dense_model(), test::random_domains(40, 200), options, observer);
    EXPECT_NO_THROW(model::check_pattern(result.weights));
    EXPECT_EQ(result.weights.lineage.pattern, options.pattern);
    EXPECT_GT(result.report.at("damage").at("objective"), 0);
    // It sees the same inputs whatever the method.
    return find_layer(result.report, "model.layers.0.self_attn.q_proj.weight");
  };
  const auto relative = [](const base::Json& layer) { return layer.at("relative_error").get<double>(); };
  const auto sweep = first_layer();
  options.method = compress::SparseMethod::magnitude;
  const auto magnitude = first_layer();
  options.method = compress::SparseMethod::wanda;
  const auto wanda = first_layer();
  options.method = compress::SparseMethod::sparse_gpt;
  options.mask = compress::MaskChoice::exact;
  const auto exact = first_layer();
  options.polish = true;
  const auto polish = first_layer().at("polish");
  EXPECT_LE(relative(wanda), relative(magnitude));
  EXPECT_LT(relative(sweep), relative(wanda));
  EXPECT_LE(relative(exact), 1.05 * relative(sweep)) << "greedy over groups, so not always less";
  EXPECT_FALSE(wanda.contains("dampening"));
  EXPECT_TRUE(sweep.contains("identity_residual"));
  EXPECT_TRUE(polish.at("kept").get<bool>()) << "much text, few columns";
  EXPECT_LT(polish.at("held_out_error_after"), polish.at("held_out_error_before"));
  EXPECT_GT(polish.at("iterations"), 0);
  options.method = compress::SparseMethod::alps;
  options.polish = false;
  const auto alps = first_layer();
  EXPECT_LT(relative(alps), relative(sweep));
  EXPECT_TRUE(alps.contains("dampening"));
  EXPECT_FALSE(alps.contains("identity_residual"));
  options.pattern = "1:4";
  first_layer();
  options.pattern = "4:8";
  first_layer();
}

TEST(Sparsify, WithoutTextToChooseByNothingIsPolished) {
  record::Observer observer;
  SparsifyOptions options;
  const calibrate::TextSplit text{.fitted = test::random_domains(40), .choosing = {}, .judging = {}};
  const auto result = sparsify(dense_model(), text, options, {}, observer);
  EXPECT_TRUE(result.report.at("damage").is_null());
  options.polish = false;
  const auto plain = sparsify(dense_model(), text, options, {}, observer);
  for (std::size_t unit = 0; unit < plain.weights.units.size(); ++unit)
    EXPECT_TRUE(at::equal(plain.weights.units[unit], result.weights.units[unit]));
}

// Warnings, and those that had come when the first layer was done.
class Warned : public record::Observer {
 public:
  void message(record::Level level, std::string_view text) override {
    if (level == record::Level::warning) warnings += text;
  }
  void progress(std::string_view, std::int64_t, std::int64_t) override {
    if (!by_first_layer) by_first_layer = warnings;
  }
  std::string warnings;
  std::optional<std::string> by_first_layer;
};

TEST(Sparsify, WarnsWhereItJudgesByPartsOfFittedDocuments) {
  Warned observer;
  calibrate::TextSplit text{.fitted = test::random_domains(40), .choosing = {}, .judging = {}};
  sparsify(dense_model(), text, {}, {}, observer);
  EXPECT_EQ(observer.warnings, "");
  text.cut = {"second"};
  sparsify(dense_model(), text, {}, {}, observer);
  EXPECT_SAYS(observer.warnings, "calibration text 'second' has too few documents");
}

// Two sources of two sequences are 96 tokens, and layers have 16 inputs.
TEST(Sparsify, WarnsOfTooLittleTextBeforeTheFirstLayer) {
  const calibrate::TextSplit text{.fitted = test::random_domains(40, 2), .choosing = {}, .judging = {}};
  Warned few;
  SparsifyOptions options;
  options.blocks = {0};
  sparsify(dense_model(), text, options, {}, few);
  ASSERT_TRUE(few.by_first_layer);
  EXPECT_SAYS(*few.by_first_layer,
              "layers of 16 inputs are fitted to 96 tokens, expected at least 8 tokens of each input");
  EXPECT_SAYS(*few.by_first_layer, "set calibration_tokens to 32768.");
  Warned compared;  // no weight is fitted
  options.method = compress::SparseMethod::magnitude;
  options.polish = false;
  sparsify(dense_model(), text, options, {}, compared);
  EXPECT_EQ(compared.warnings, "");
}

TEST(Sparsify, WhatJudgesDecidesNothing) {
  record::Observer observer;
  SparsifyOptions options;
  options.share = 0.5;
  const auto input = dense_model();
  auto text = calibrate::split_by_document(test::random_domains(40, 60));
  const auto first = sparsify(input, text, options, {}, observer);
  std::swap(text.judging[0].sequences, text.judging[1].sequences);
  text.judging[0].sequences.pop_back();
  const auto second = sparsify(input, text, options, {}, observer);
  EXPECT_EQ(first.report.at("single_damages"), second.report.at("single_damages"));
  EXPECT_NE(first.report.at("damage"), second.report.at("damage"));
  for (std::size_t unit = 0; unit < input.units.size(); ++unit)
    EXPECT_TRUE(at::equal(first.weights.units[unit], second.weights.units[unit]));
  // The damage is that of the result, on this text alone.
  const auto batches = calibrate::calibration_batches(text.judging, input.config, at::kCPU);
  const auto group = comm::single_group();
  const auto damage = sparsify::DamageTest(input, batches, options.objective, *group)
                          .measure(calibrate::Walk(second.weights, batches));
  auto expected = sparsify::to_json(damage, {"first", "second"});
  expected["up_to_block"] = 2;
  EXPECT_EQ(second.report.at("damage"), expected);
}

// f of one document after the other, from whole logits; every third sequence goes on with a document.
TEST(Damage, IsThePairedChangeOfTheObjectiveByWholeDocuments) {
  const auto reference = dense_model();
  auto changed = model::converted(reference, at::kDouble);
  changed.tensor("model.layers.1.mlp.up_proj.weight").mul_(0.7);
  auto domains = test::random_domains(40, 60);
  for (auto& domain : domains)
    for (std::size_t i = 1; i < domain.sequences.size(); ++i) domain.sequences[i].goes_on = i % 3 != 0;
  const auto batches = calibrate::calibration_batches(domains, reference.config, at::kCPU, 24 * 4);
  const auto group = comm::single_group();
  const sparsify::DamageTest test(reference, batches, {.perplexity = 1, .kl = 0.5}, *group);
  std::vector<std::vector<eval::RatioTerm>> terms(2);
  double nll_sum = 0, kl_sum = 0;
  for (std::size_t i = 0; i < batches.size(); ++i) {
    const auto& batch = batches[i];
    const auto log_p = at::log_softmax(test::plain_logits(reference, batch), 1),
               log_q = at::log_softmax(test::plain_logits(changed, batch), 1);
    const auto counts = batch.targets_N.ge(0).to(at::kDouble);
    const auto nll = [&](const at::Tensor& log_NV) {
      return -log_NV.gather(1, batch.targets_N.clamp_min(0).unsqueeze(1)).squeeze(1);
    };
    const auto kl = (log_p.exp() * (log_p - log_q)).sum(1) * counts,
               more = (nll(log_q) - nll(log_p)) * counts;
    nll_sum += more.sum().item<double>(), kl_sum += kl.sum().item<double>();
    for (std::size_t d = 0; d + 1 < batch.layout.starts.size(); ++d) {
      const auto begin = batch.layout.starts[d], length = batch.layout.starts[d + 1] - begin;
      if (!batch.goes_on[d]) terms[batch.source].emplace_back();
      auto& term = terms[batch.source].back();
      term.numerator += (more + 0.5 * kl).narrow(0, begin, length).sum().item<double>();
      term.denominator += counts.narrow(0, begin, length).sum().item<double>();
    }
  }
  EXPECT_EQ(terms[0].size(), 120U - 40) << "two begin in each sequence, one goes on in two of three";
  const auto measured = [&](const model::Weights& weights) {
    calibrate::Walk walk(weights, batches);
    walk.advance();
    return test.measure(walk);
  };
  const auto damage = measured(changed);
  std::vector<double> expected;
  for (const auto& domain : terms) {
    double sum = 0, tokens = 0;
    for (const auto& term : domain) sum += term.numerator, tokens += term.denominator;
    expected.push_back(sum / tokens);
    EXPECT_NEAR(damage.sources.at(expected.size() - 1).objective, expected.back(), 1e-5);
  }
  const auto interval = eval::bootstrap_interval(terms);
  ASSERT_TRUE(interval && damage.interval);
  EXPECT_NEAR(damage.mean.objective, (expected[0] + expected[1]) / 2, 1e-5) << "rows are float32";
  EXPECT_NEAR(damage.interval->low, interval->low, 1e-5);
  EXPECT_NEAR(damage.interval->high, interval->high, 1e-5);
  const double targets = 2 * 60 * 22;  // as many in both domains
  EXPECT_NEAR(damage.mean.delta_log_perplexity, nll_sum / targets, 1e-5);
  EXPECT_NEAR(damage.mean.kl, kl_sum / targets, 1e-5);
  EXPECT_EQ(damage.worst_source, expected[1] > expected[0] ? 1U : 0U);
  EXPECT_GT(damage.mean.objective, 0.01);
  EXPECT_EQ(measured(reference).mean.objective, 0);
  // All tokens are among the most likely ones that are kept.
  const sparsify::DamageTest kept(reference, batches, {.perplexity = 1, .kl = 0.5}, *group,
                                  calibrate::KlOver::top_k);
  calibrate::Walk walk(changed, batches);
  walk.advance();
  EXPECT_NEAR(kept.measure(walk).mean.objective, damage.mean.objective, 1e-5);
  EXPECT_NEAR(kept.measure(walk).interval->high, damage.interval->high, 1e-5);
  const auto json = sparsify::to_json(damage, {"first", "second"});
  EXPECT_EQ(json.at("worst_domain"), domains[damage.worst_source].name);
  EXPECT_EQ(json.at("domains").at("second"), damage.sources[1].objective);
}

TEST(Sparsify, AShareIsOfTheLayersWithTheLeastDamage) {
  record::Observer observer;
  SparsifyOptions options;
  options.share = 0.5;
  options.permute = false;  // so that what is not chosen stays as it is
  auto input = dense_model();
  // One layer is 2:4 as it is: it loses nothing.
  const std::string harmless = "model.layers.1.mlp.gate_proj.weight";
  input.tensor(harmless).view({-1, 4}).narrow(1, 1, 2).zero_();
  const auto result = sparsify(input, test::random_domains(40, 400), options, observer);
  const auto& report = result.report;
  const auto& singles = report.at("single_damages");
  ASSERT_EQ(singles.size(), 21U);
  EXPECT_EQ(singles[0].at("name"), harmless);
  EXPECT_NEAR(singles[0].at("objective").get<double>(), 0, 1e-6);
  double taken = 0, all = 0, before = -1;
  std::set<std::string> sparse;
  for (const auto& row : singles) {
    const auto name = row.at("name").get<std::string>();
    const auto weights = static_cast<double>(input.tensor(name).numel());
    EXPECT_GE(row.at("objective").get<double>() / weights, before);
    before = row.at("objective").get<double>() / weights;
    if (row.at("interval").is_null()) {  // no document loses anything
      EXPECT_EQ(row.at("name"), harmless);
    } else {
      EXPECT_LE(row.at("interval")[0], row.at("objective"));
      EXPECT_GE(row.at("interval")[1], row.at("objective"));
    }
    all += weights;
    if (row.at("sparse")) {
      taken += weights;
      sparse.insert(name);
    } else {
      EXPECT_TRUE(at::equal(result.weights.tensor(name), input.tensor(name))) << name;
    }
  }
  EXPECT_LE(taken, 0.5 * all);
  EXPECT_GT(taken, 0.4 * all);
  const auto& listed = result.weights.lineage.sparse_layers;
  EXPECT_EQ(std::set<std::string>(listed.begin(), listed.end()), sparse);
  EXPECT_EQ(report.at("cumulative_damages").size(), 3U);
  EXPECT_EQ(report.at("damage"), report.at("cumulative_damages").back());
  // All of them cost more.
  options.share = 1;
  const auto whole = sparsify(input, test::random_domains(40, 400), options, observer).report;
  EXPECT_GT(whole.at("damage").at("objective"), report.at("damage").at("objective"));
  EXPECT_FALSE(whole.contains("single_damages"));
  options.share = 0.001;
  EXPECT_SAYS(test::message_of<base::UsageError>(
                  [&] { sparsify(input, test::random_domains(40, 400), options, observer); }),
              "share");
  options.share = 0.5;
  EXPECT_SAYS(test::message_of<base::DataError>(
                  [&] { sparsify(input, test::random_domains(40, 1), options, observer); }),
              "calibration_tokens");
}

TEST(Sparsify, OnlyChosenLayersOfChosenBlocksChange) {
  record::Observer observer;
  SparsifyOptions options;
  options.layers = {"down_proj", "q_proj"};
  options.blocks = {1};
  options.permute = false;
  const auto input = dense_model();
  const auto result = sparsify(input, test::random_domains(40), options, observer);
  EXPECT_EQ(result.weights.lineage.sparse_layers,
            (std::vector<std::string>{"model.layers.1.self_attn.q_proj.weight",
                                      "model.layers.1.mlp.down_proj.weight"}));
  for (const std::size_t unit : {0, 1, 3})
    EXPECT_TRUE(at::equal(result.weights.units[unit], input.units[unit]));
}

// Channels of MLPs change places, and rows and columns with them; nothing else does.
TEST(Sparsify, APermutedMlpIsTheSameMlp) {
  record::Observer observer;
  SparsifyOptions options;
  options.layers = {"down_proj"};
  options.polish = false;
  const auto input = dense_model();
  const auto result = sparsify(input, test::random_domains(40), options, observer);
  const auto& lineage = result.weights.lineage;
  EXPECT_FALSE(lineage.identity());
  for (std::size_t block = 0; block < 3; ++block) {
    const auto& channels = lineage.kept.blocks[block].channels;
    const auto order = at::tensor(channels, at::kLong);
    for (const auto role : {architecture::Role::gate, architecture::Role::up}) {
      const auto name = input.layout.units[block + 1].find(role)->name;
      EXPECT_TRUE(at::equal(result.weights.tensor(name), input.tensor(name).index_select(0, order)));
    }
    const auto layer =
        find_layer(result.report, input.layout.units[block + 1].find(architecture::Role::down)->name);
    EXPECT_GE(layer.at("kept_share_after"), layer.at("kept_share_before"));
    EXPECT_FALSE(layer.contains("order")) << "lineage has it";
  }
  EXPECT_EQ(model::lineage_from_json(model::to_json(lineage), input.config, "here").kept, lineage.kept);
  options.permute = false;
  const auto plain = sparsify(input, test::random_domains(40), options, observer);
  EXPECT_EQ(plain.weights.lineage.kept, input.lineage.kept);
  const auto last = [](const auto& found) { return found.report.at("layers").back().at("relative_error"); };
  EXPECT_LT(last(result), last(plain));
}

// A later layer sees what the sparse layers before it produce: alone it gets another result.
TEST(Sparsify, GoesOnThroughTheSparseLayers) {
  record::Observer observer;
  const auto input = dense_model();
  SparsifyOptions alone;
  alone.blocks = {2};
  const auto all = sparsify(input, test::random_domains(40), {}, observer);
  const auto one = sparsify(input, test::random_domains(40), alone, observer);
  EXPECT_FALSE(at::equal(all.weights.units[3], one.weights.units[3]));
  SparsifyOptions first;
  first.blocks = {0, 1};
  const auto half = sparsify(input, test::random_domains(40), first, observer);
  const auto rest = sparsify(half.weights, test::random_domains(40), alone, observer);
  EXPECT_TRUE(at::equal(all.weights.units[3], rest.weights.units[3]));
  EXPECT_EQ(rest.weights.lineage.sparse_layers, all.weights.lineage.sparse_layers);
}

TEST(Sparsify, BatchesDoNotChangeTheHessian) {
  record::Observer observer;
  const auto input = dense_model();
  auto domains = test::random_domains(40, 4);
  const auto whole = sparsify(input, {.fitted = domains, .choosing = {}, .judging = {}}, {}, {}, observer);
  std::vector<calibrate::SourceText> split;  // each sequence a domain, hence a batch of its own
  for (const auto& domain : domains)
    for (const auto& sequence : domain.sequences) split.push_back({"part", {sequence}});
  const auto parts = sparsify(input, {.fitted = split, .choosing = {}, .judging = {}}, {}, {}, observer);
  for (std::size_t unit = 0; unit < input.units.size(); ++unit)
    EXPECT_LT(test::largest_difference(whole.weights.units[unit], parts.weights.units[unit]), 1e-5);
}

TEST(Sparsify, ThePatternIsInTheSavedFile) {
  record::Observer observer;
  const test::TemporaryDirectory directory;
  auto input = test::tiny_model(test::tiny_config(), 1, at::kFloat);
  input.file_dtype = io::Dtype::bf16;
  const auto result = sparsify(input, test::random_domains(40), {}, observer);
  model::save_model(result.weights, directory / "model", {}, base::Json::object());
  const auto saved = model::load_weights(directory / "model", at::kFloat, at::kCPU);
  EXPECT_EQ(saved.lineage.sparse_layers.size(), 3u * 7);
  EXPECT_NO_THROW(model::check_pattern(saved));
  for (const auto& name : saved.lineage.sparse_layers)  // the sweep's result had been rounded as the file is
    EXPECT_TRUE(at::equal(saved.tensor(name), result.weights.tensor(name))) << name;
}

TEST(Sparsify, AfterPruningTheLineageHasBoth) {
  record::Observer observer;
  auto pruning = test::stepwise_options();
  pruning.target.parameters_fraction = 0.7;
  pruning.width_multiple = 4;
  const auto pruned = prune::prune_searched({dense_model(), test::random_domains(40), pruning, observer});
  const auto result = sparsify(pruned.weights, test::random_domains(40), {}, observer);
  auto kept = result.weights.lineage.kept;
  for (auto& block : kept.blocks) std::sort(block.channels.begin(), block.channels.end());
  EXPECT_EQ(kept, pruned.weights.lineage.kept);
  EXPECT_EQ(result.weights.lineage.sparse_layers.size(), pruned.weights.config.blocks.size() * 7);
}

TEST(Sparsify, RefusesWhatItCannotDoBeforeAnyWork) {
  record::Observer observer;
  const auto refusal = [&](const model::Weights& input, const SparsifyOptions& options) {
    return test::message_of<base::UsageError>(
        [&] { sparsify(input, test::random_domains(40), options, observer); });
  };
  SparsifyOptions layer, block, pattern, size, dampening;
  layer.layers = {"gate_prj"};
  block.blocks = {3};
  pattern.pattern = "2 of 4";
  size.block_size = 6;
  dampening.dampening_fraction = 0;
  EXPECT_NE(refusal(dense_model(), layer).find("'gate_proj'"), std::string::npos)
      << refusal(dense_model(), layer);
  EXPECT_NE(refusal(dense_model(), block).find("0 to 2"), std::string::npos);
  for (const auto& options : {pattern, size, dampening}) refusal(dense_model(), options);
  const auto odd = refusal(test::tiny_model(test::tiny_config(3, 18)), {});
  EXPECT_NE(odd.find("model.layers.0.mlp.down_proj.weight"), std::string::npos) << odd;
  SparsifyOptions other;
  other.pattern = "4:8";
  const auto sparse = sparsify(dense_model(), test::random_domains(40), {}, observer).weights;
  EXPECT_NE(refusal(sparse, other).find("4:8"), std::string::npos);
}

TEST(Sparsify, ActivationsThatAreNotFiniteNameTheLayer) {
  record::Observer observer;
  auto input = dense_model();
  input.tensor("model.layers.1.mlp.up_proj.weight")[0][0] = std::numeric_limits<double>::infinity();
  SparsifyOptions options;
  options.layers = {"down_proj"};
  const auto message = test::message_of<base::ValidationError>(
      [&] { sparsify(input, test::random_domains(40), options, observer); });
  EXPECT_NE(message.find("model.layers.1.mlp.down_proj.weight"), std::string::npos) << message;
}

// Counts the layers that are worked on, and ends the work after some of them: by request, or as a kill does.
class Disturbing : public record::Observer {
 public:
  enum class By { request, kill };
  explicit Disturbing(std::int64_t after = std::int64_t{1} << 40, By by = By::request)
      : left_(after), by_(by) {}
  void progress(std::string_view, std::int64_t, std::int64_t) override {
    ++layers;
    if (--left_ == 0 && by_ == By::kill) throw std::runtime_error("killed");
  }
  void message(record::Level, std::string_view text) override { said.append(text).append("\n"); }
  bool stop_requested() const override { return left_ <= 0; }
  std::int64_t layers = 0;
  std::string said;

 private:
  std::int64_t left_;
  By by_;
};

std::int64_t planned(const model::Weights& weights, const calibrate::TextSplit& text,
                     const SparsifyOptions& options, bool on_disk) {
  sparsify::TextTokens tokens;
  for (const auto& [part, sum] : {std::pair(&text.fitted, &tokens.fitted),
                                  {&text.choosing, &tokens.choosing},
                                  {&text.judging, &tokens.judging}})
    for (const auto& place : calibrate::batch_places(*part, weights.config.vocab_size, 2048)) {
      *sum += place.tokens;
      tokens.batch = std::max(tokens.batch, place.tokens);
    }
  return sparsify::plan_sparsify(weights.config, weights.units.front().element_size(), tokens, options,
                                 on_disk, /*offloaded=*/false, ops::path_of(weights.options().device()))
      .total_bytes();
}

TEST(Sparsify, NeedsTheMemoryThatItStates) {
  ops::install_tensor_allocator();
  auto config = test::tiny_config();
  config.hidden_size = 128;
  config.blocks.assign(3,
                       {.attention = architecture::Attention{8, 4, 16}, .mlp = architecture::DenseMlp{256}});
  const auto weights = test::tiny_model(config, 1, at::kFloat);
  const auto text = calibrate::split_by_document(test::random_domains(40, 200, 64));
  const auto before = ops::live_tensor_bytes();  // a copy is made sparse
  for (const auto& [share, on_disk] : {std::pair(1.0, false), {1.0, true}, {0.5, false}}) {
    const test::TemporaryDirectory made;
    record::Observer observer;
    SparsifyOptions options;
    options.share = share;
    options.layers = {"q_proj", "down_proj"};
    options.blocks = {1};
    const auto needs = planned(weights, text, options, on_disk);
    ops::reset_peak_tensor_bytes();
    const auto result = sparsify(weights, text, options,
                                 {.scratch = made / "scratch", .identity = 1, .memory = needs}, observer);
    EXPECT_EQ(result.report.at("memory_planned_bytes").get<std::int64_t>(), needs);
    const auto needed = ops::peak_tensor_bytes() - before;
    EXPECT_LT(needed, needs) << share << on_disk;
    EXPECT_GT(needed, needs * 7 / 10) << share << on_disk;
  }
}

class SparsifyResumed : public testing::TestWithParam<double> {
 protected:
  SparsifyResumed() {
    options_.share = GetParam();
    options_.layers = {"q_proj", "o_proj", "down_proj"};
  }
  sparsify::SparsifyResult run(const test::TemporaryDirectory& directory, record::Observer& observer,
                               const model::Weights& input, const std::string& identity = "this") const {
    return sparsify(input, calibrate::split_by_document(test::random_domains(40, 40)), options_,
                    {.scratch = directory / "scratch", .identity = identity}, observer);
  }
  sparsify::SparsifyResult run(const test::TemporaryDirectory& directory, record::Observer& observer) const {
    return run(directory, observer, input_);
  }
  static std::size_t kept(const test::TemporaryDirectory& directory) {
    std::size_t files = 0;
    if (std::filesystem::exists(directory / "scratch"))
      for (const auto& entry : std::filesystem::directory_iterator(directory / "scratch"))
        files += entry.path().extension() == ".safetensors";
    return files;
  }
  static void expect_equal(const sparsify::SparsifyResult& found, const sparsify::SparsifyResult& expected) {
    for (std::size_t unit = 0; unit < expected.weights.units.size(); ++unit)
      EXPECT_TRUE(at::equal(found.weights.units[unit], expected.weights.units[unit])) << unit;
    EXPECT_EQ(found.weights.lineage.sparse_layers, expected.weights.lineage.sparse_layers);
    EXPECT_EQ(without_costs(found.report), without_costs(expected.report));
  }
  static base::Json without_costs(base::Json report) {
    for (const auto* cost : {"seconds", "memory_planned_bytes"}) report.erase(cost);
    for (auto& layer : report["layers"]) layer.erase("seconds");
    return report;
  }
  std::int64_t passes() const { return GetParam() < 1 ? 2 : 1; }

  SparsifyOptions options_;
  model::Weights input_ = test::tiny_model(test::tiny_config(), 1, at::kFloat);
};

// 3 blocks of 3 chosen layers; with a share all of them are measured first.
TEST_P(SparsifyResumed, HasTheSameBitsWhereverItWasDisturbed) {
  const test::TemporaryDirectory whole;
  Disturbing undisturbed;
  const auto expected = run(whole, undisturbed);
  EXPECT_EQ(kept(whole), static_cast<std::size_t>(3 * passes())) << "whoever saves the result removes them";
  const auto once = sparsify(input_, test::random_domains(40, 40), options_, undisturbed);
  expect_equal(once, expected);
  const auto all = expected.report.at("layers").size() + (passes() == 2 ? 9U : 0U);
  for (const auto by : {Disturbing::By::request, Disturbing::By::kill})
    for (const std::int64_t after : {1, 3, 4, 8, 10, 12}) {
      if (after >= static_cast<std::int64_t>(all)) continue;
      SCOPED_TRACE(base::join("after layer ", after));
      const test::TemporaryDirectory made;
      Disturbing disturbing(after, by), rest;
      if (by == Disturbing::By::request)
        EXPECT_SAYS(test::message_of<record::StoppedError>([&] { run(made, disturbing); }),
                    "the blocks before it are kept, the same command again goes on there");
      else
        EXPECT_THROW(run(made, disturbing), std::runtime_error);
      const auto finished = kept(made);
      expect_equal(run(made, rest), expected);
      EXPECT_EQ(rest.said.find("going on after block") != std::string::npos, finished % 3 != 0) << rest.said;
      if (after <= 9) {
        EXPECT_EQ(rest.layers, static_cast<std::int64_t>(all - 3 * finished));
      }
    }
}

TEST_P(SparsifyResumed, AnErrorInALateLayerKeepsTheBlocksBeforeIt) {
  const test::TemporaryDirectory made, whole;
  auto broken = model::converted(input_, at::kFloat);
  broken.tensor("model.layers.2.mlp.up_proj.weight").zero_();
  for (const std::int64_t layers : {8, 2}) {  // of three blocks, then of the last
    Disturbing observer;
    EXPECT_SAYS(test::message_of<base::ValidationError>([&] { run(made, observer, broken); }),
                "model.layers.2.mlp.down_proj.weight: its inputs on the calibration text are all 0");
    EXPECT_EQ(observer.layers, layers);
    EXPECT_EQ(kept(made), 2U);
  }
  if (passes() == 2) return;  // what was measured depends on the later blocks
  Disturbing rest, undisturbed;
  expect_equal(run(made, rest), run(whole, undisturbed));
  EXPECT_EQ(rest.layers, 3);
}

TEST_P(SparsifyResumed, ADamagedOrForeignBlockIsMadeAgain) {
  const test::TemporaryDirectory whole;
  Disturbing undisturbed;
  const auto expected = run(whole, undisturbed);
  const auto name =
      base::Path("scratch") / (passes() == 2 ? "measured-00001.safetensors" : "sparse-00001.safetensors");
  for (const int damage : {0, 1, 2}) {
    SCOPED_TRACE(damage);
    const auto bytes = base::read_file(whole / name);
    auto damaged = bytes;
    if (damage == 0) damaged.resize(bytes.size() - 3);
    if (damage == 1) damaged[bytes.rfind(passes() == 2 ? "objective" : "relative_error") + 30] ^= 1;
    if (damage == 2) damaged = "no tensors";
    std::ofstream(whole / name, std::ios::binary) << damaged;
    Disturbing again;
    expect_equal(run(whole, again), expected);
    EXPECT_EQ(again.layers, 3);
    Disturbing once_more;
    expect_equal(run(whole, once_more), expected);
    EXPECT_EQ(once_more.layers, 0);
  }
  Disturbing other;
  expect_equal(run(whole, other, input_, "other"), expected);
  EXPECT_EQ(other.layers, undisturbed.layers);
}

TEST_P(SparsifyResumed, ADamageThatIsNotFiniteIsRefused) {
  const test::TemporaryDirectory made;
  Disturbing observer;
  input_.tensor("model.norm.weight")[0] = std::numeric_limits<float>::infinity();
  EXPECT_SAYS(test::message_of<base::ValidationError>([&] { run(made, observer); }),
              "f on the calibration text");
}

TEST_P(SparsifyResumed, WithoutMemoryForHiddenStatesTheyAreOnDiskAndNothingChanges) {
  auto text = calibrate::split_by_document(test::random_domains(40, 900));
  const auto run_in = [&](std::int64_t memory, const base::Path& scratch, Disturbing& observer) {
    return sparsify(input_, text, options_, {.scratch = scratch, .identity = "this", .memory = memory},
                    observer);
  };
  const test::TemporaryDirectory whole, made;
  Disturbing unlimited, limited, refused;
  const auto expected = run_in(0, whole / "scratch", unlimited);
  const auto needed = planned(input_, text, options_, false);
  EXPECT_THROW(run_in(needed / 2, made / "scratch", refused), base::MemoryError);
  EXPECT_FALSE(std::filesystem::exists(made / "scratch")) << "refused before the start";
  expect_equal(run_in(needed - 1, made / "scratch", limited), expected);
  EXPECT_SAYS(limited.said, "most of them on disk");
  EXPECT_EQ(unlimited.said.find("on disk"), std::string::npos);
  for (const auto& entry : std::filesystem::directory_iterator(made / "scratch"))
    EXPECT_FALSE(entry.path().filename().string().starts_with("tensors")) << "the file has no name";
}

TEST_P(SparsifyResumed, ARefusalLeavesNothing) {
  const test::TemporaryDirectory made;
  Disturbing observer;
  options_.blocks = {7};
  EXPECT_THROW(run(made, observer), base::UsageError);
  EXPECT_FALSE(std::filesystem::exists(made / "scratch"));
}

INSTANTIATE_TEST_SUITE_P(AllAndAShare, SparsifyResumed, testing::Values(1.0, 0.5),
                         [](const auto& of) { return of.param < 1 ? "share" : "all"; });

}  // namespace
}  // namespace retort
