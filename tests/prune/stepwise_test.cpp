#include "retort/prune/searched.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "retort/architecture/counts.h"
#include "retort/base/error.h"
#include "retort/compress/surgery.h"
#include "retort/model/forward.h"
#include "retort/prune/evaluator.h"
#include "retort/prune/plan.h"
#include "retort/record/stopped.h"
#include "support/impatient.h"
#include "support/models_for_tests.h"
#include "support/random_text.h"
#include "support/stepwise_options.h"
#include "support/temporary_directory.h"

namespace retort {
namespace {

using architecture::Kept;
using prune::prune_searched;
using prune::PruneOptions;

PruneOptions options_for(double fraction) {
  auto options = test::stepwise_options();
  options.target.parameters_fraction = fraction;
  options.width_multiple = 4;
  return options;
}

// Stepwise search once more, in a few lines and without masks, kept states or shared code but slicing: every
// candidate is built, run from its embedding and compared in float64.
class BruteForce {
 public:
  BruteForce(const model::Weights& input, const std::vector<calibrate::SourceText>& sources,
             const prune::PruneOptions& options)
      : BruteForce(input, calibrate::split_by_document(sources, prune::shares_of(options))) {}
  BruteForce(const model::Weights& input, const calibrate::TextSplit& text)
      : input_(input),
        batches_(calibrate::calibration_batches(text.choosing, input.config, at::kCPU)),
        ranked_by_(calibrate::calibration_batches(text.fitted, input.config, at::kCPU)),
        domains_(text.choosing.size()) {}

  double objective(const Kept& candidate) const {
    const auto smaller = compress::sliced(input_, candidate);
    std::map<std::size_t, std::pair<double, double>> sums;  // source -> value, targets
    for (const auto& batch : batches_) {
      const auto counted = batch.targets_N.ge(0);
      const auto ids = batch.targets_N.clamp_min(0).unsqueeze(1);
      const auto teacher = test::plain_logits(input_, batch).log_softmax(-1);
      const auto student = test::plain_logits(smaller, batch).log_softmax(-1);
      const auto nll = (teacher - student).gather(1, ids).squeeze(1);
      const auto kl = (teacher.exp() * (teacher - student)).sum(-1);
      sums[batch.source].first += ((nll + kl) * counted).sum().item<double>();
      sums[batch.source].second += counted.sum().item<double>();
    }
    double mean = 0;
    for (const auto& [source, sum] : sums) mean += sum.first / sum.second / domains_;
    return mean;
  }

  // The channels with the greatest sum |w| ||a|| in the candidate's own model.
  Kept narrowed(const Kept& candidate, std::int64_t width) const {
    const auto smaller = compress::sliced(input_, candidate);
    auto result = candidate;
    for (std::size_t target = 0; target < candidate.blocks.size(); ++target) {
      auto squares = at::zeros({std::ssize(candidate.blocks[target].channels)}, at::kDouble);
      for (const auto& batch : ranked_by_) {
        auto hidden = model::embedded(smaller, batch.ids_N);
        for (std::size_t block = 0; block <= target; ++block) {
          const model::BlockHooks hooks{.tap = [&](model::Tap tap, const at::Tensor& x) {
            if (tap == model::Tap::down_input && block == target) squares += x.square().sum(0);
          }};
          hidden = model::block_forward(model::weights_of_block(smaller, static_cast<std::int64_t>(block)),
                                        1e-6, hidden, batch.layout, nullptr, &hooks);
        }
      }
      const auto down = model::weights_of_block(smaller, static_cast<std::int64_t>(target)).down_DI;
      const auto score = down.abs().sum(0) * squares.sqrt();
      const auto best = std::get<0>(std::get<1>(score.topk(width)).sort());
      result.blocks[target].channels.clear();
      for (std::int64_t i = 0; i < width; ++i)
        result.blocks[target].channels.push_back(
            candidate.blocks[target].channels[static_cast<std::size_t>(best[i].item<std::int64_t>())]);
    }
    return result;
  }

  // Moves until at most `parameters` are left; the last of them by least f among those that reach.
  Kept run(std::int64_t parameters) const {
    auto current = architecture::whole(input_.config);
    double now = 0;
    while (architecture::parameters_of(input_.config, current) > parameters) {
      std::vector<Kept> next;
      if (current.blocks.size() > 1)
        for (const auto& block : current.blocks)
          next.push_back(architecture::without_block(current, block.number));
      const auto width = std::ssize(current.blocks[0].channels);
      if (width > 4) next.push_back(narrowed(current, width - 4));
      auto best =
          least(next, [&](const Kept& c) { return (objective(c) - now) / double(removed(current, c)); });
      if (architecture::parameters_of(input_.config, best) <= parameters) {
        for (auto w = width - 8; w > 0; w -= 4) next.push_back(narrowed(current, w));
        std::erase_if(
            next, [&](const auto& c) { return architecture::parameters_of(input_.config, c) > parameters; });
        best = least(next, [&](const Kept& c) { return objective(c); });
      }
      current = best;
      now = objective(current);
    }
    return current;
  }

 private:
  std::int64_t removed(const Kept& from, const Kept& to) const {
    return architecture::parameters_of(input_.config, from) - architecture::parameters_of(input_.config, to);
  }
  template <typename Value>
  static Kept least(const std::vector<Kept>& candidates, Value value) {
    std::vector<double> values;
    for (const auto& candidate : candidates) values.push_back(value(candidate));
    return candidates[static_cast<std::size_t>(std::min_element(values.begin(), values.end()) -
                                               values.begin())];
  }

  const model::Weights& input_;
  std::vector<calibrate::Batch> batches_, ranked_by_;
  double domains_;
};

base::Json untimed(base::Json report) {
  for (const auto* key : {"memory_unused_bytes", "seconds", "speed", "cost", "cost_before"})
    report.erase(key);
  return report;
}

Kept kept(const base::Json& report) {
  return architecture::kept_from_json(report["kept"]);
}

// Candidates as they are cut.
prune::PruneOptions plain(double fraction) {
  auto options = options_for(fraction);
  options.compensate = false;
  return options;
}

TEST(Stepwise, TakesTheStepsOfABruteForceSearch) {
  record::Observer observer;
  for (const std::uint64_t seed : {1, 2})
    for (const double fraction : {0.85, 0.4}) {
      const auto input = test::tiny_model(test::tiny_config(4, 24), seed);
      const auto sources = test::random_domains(input.config.vocab_size, 2);
      const auto result = prune_searched({input, sources, plain(fraction), observer});
      const auto expected = BruteForce(input, sources, options_for(fraction)).run(result.report.target);
      EXPECT_EQ(result.report.kept, expected) << seed << " " << fraction;
    }
}

// Of 3,000 tokens the 512 most likely have a fraction of a flat distribution: by them alone other steps win.
model::Weights flat_model(std::uint64_t seed, std::size_t blocks = 4) {
  auto config = test::tiny_config(blocks, 24, /*tied=*/false);
  config.vocab_size = 3000;
  return test::tiny_model(config, seed);
}

TEST(Stepwise, MeasuresCloseLeadersByTheWholeVocabulary) {
  record::Observer observer;
  int exact = 0, bounds = 0;
  for (std::uint64_t seed = 1; seed <= 6; ++seed)
    for (const double fraction : {0.985, 0.95}) {
      const auto input = flat_model(seed);
      const auto sources = test::random_domains(3000, 2);
      const auto report = to_json(prune_searched({input, sources, plain(fraction), observer}).report);
      EXPECT_EQ(kept(report),
                BruteForce(input, sources, options_for(fraction)).run(report["parameters_target"]))
          << seed << " " << fraction;
      for (const auto& decision : report["decisions"])
        for (const auto& candidate : decision["candidates"]) ++(candidate["exact"] ? exact : bounds);
    }
  EXPECT_GT(exact, 0);
  EXPECT_GT(bounds, exact) << "only those that are close are measured twice";
}

// One of six blocks goes; by the lower bound it would be another one.
TEST(Stepwise, TakesTheBetterOneWhereTheLowerBoundFavoursAnother) {
  record::Observer observer;
  auto options = options_for(0.985);
  options.channels = options.heads = false;
  for (const std::uint64_t seed : {3, 26, 38}) {
    const auto input = flat_model(seed, 6);
    const auto sources = test::random_domains(3000, 2);
    const auto text = calibrate::split_by_document(sources, prune::shares_of(options));
    const prune::Evaluator evaluator(input, text.choosing, {});
    std::vector<double> bounds, exact;
    for (std::int64_t block = 0; block < 6; ++block) {
      const auto candidate = architecture::without_block(architecture::whole(input.config), block);
      bounds.push_back(evaluator.evaluate(candidate).mean.objective);
      exact.push_back(evaluator.evaluate_exactly(compress::sliced(input, candidate)).mean.objective);
    }
    const auto least = [](const std::vector<double>& values) {
      return std::min_element(values.begin(), values.end()) - values.begin();
    };
    ASSERT_NE(least(bounds), least(exact)) << seed;
    const auto report = to_json(prune_searched({input, sources, options, observer}).report);
    ASSERT_EQ(report["decisions"].size(), 1U);
    EXPECT_EQ(report["decisions"][0]["block"], least(exact)) << seed;
    EXPECT_TRUE(report["decisions"][0]["exact"]);
  }
}

TEST(Stepwise, GoesOnAfterEvaluationsOfCloseLeaders) {
  const auto input = flat_model(1);
  const auto sources = test::random_domains(3000, 2);
  const test::TemporaryDirectory directory;
  const auto run = [&](const std::string& file, record::Observer& observer) {
    return untimed(
        to_json(prune_searched({input, sources, options_for(0.95), observer, {directory / file}}).report));
  };
  record::Observer patient;
  const auto expected = run("whole.jsonl", patient);
  const auto lines = base::read_file(directory / "whole.jsonl");
  ASSERT_NE(lines.find("\"first\":2"), std::string::npos) << "by the whole vocabulary";
  const auto evaluations = std::count(lines.begin(), lines.end(), '\n') - 1;
  for (int patience = 0; patience < evaluations; patience += 1 + patience / 3) {
    const auto file = base::join("parts", patience, ".jsonl");
    test::AskedTooOften observer(patience);
    EXPECT_THROW(run(file, observer), record::StoppedError) << patience;
    EXPECT_EQ(run(file, patient), expected) << patience;
    EXPECT_EQ(base::read_file(directory / file), lines) << patience << ": nothing was measured twice";
  }
}

TEST(Stepwise, ReachesEveryTargetWithAUniformModel) {
  record::Observer observer;
  const auto input = test::tiny_model(test::tiny_config(4, 24), 1, at::kFloat);
  const auto before = architecture::num_parameters(input.config);
  for (const double fraction : {0.97, 0.9, 0.75, 0.5, 0.4}) {
    const auto result = prune_searched({input, test::random_domains(40, 2), options_for(fraction), observer});
    const auto after = architecture::num_parameters(result.weights.config);
    EXPECT_LE(static_cast<double>(after), fraction * static_cast<double>(before));
    EXPECT_TRUE(result.weights.config.uniform());
    EXPECT_EQ(result.report.input, input.config);
    EXPECT_EQ(result.report.output, result.weights.config);
    EXPECT_EQ(architecture::mlp_width(result.weights.config.blocks[0]) % 4, 0);
    EXPECT_LT(result.report.sliced_output_difference, 1e-5);
  }
}

TEST(Stepwise, ReportsEveryDecisionWithItsCandidates) {
  record::Observer observer;
  const auto input = test::tiny_model(test::tiny_config(4, 24));
  const auto report =
      to_json(prune_searched({input, test::random_domains(40, 2), options_for(0.5), observer}).report);
  auto parameters = report["parameters_before"].get<std::int64_t>();
  double before = 0;
  ASSERT_GE(report["decisions"].size(), 2u);
  for (const auto& decision : report["decisions"]) {
    const auto removed = decision["parameters_removed"].get<std::int64_t>();
    parameters -= removed;
    const double f = decision["objective"];
    EXPECT_DOUBLE_EQ(decision["score"].get<double>(), (f - before) / static_cast<double>(removed));
    EXPECT_GE(decision["candidates"].size(), 2u);
    before = f;
  }
  EXPECT_EQ(parameters, report["parameters_after"].get<std::int64_t>());
  EXPECT_EQ(report["decisions"][0]["candidates"].size(), 6u);
  for (const auto& decision : report["decisions"]) {
    const auto& candidates = decision["candidates"];
    const auto chosen = std::find_if(candidates.begin(), candidates.end(), [&](const auto& candidate) {
      return candidate["candidate"] == decision["candidate"];
    });
    ASSERT_NE(chosen, candidates.end());
    for (const auto* key : {"objective", "score", "exact"}) EXPECT_EQ((*chosen)[key], decision[key]) << key;
  }
  EXPECT_EQ(report["kind"], "prune");
  EXPECT_EQ(report["cost_before"]["parameters"], report["parameters_before"]);
  EXPECT_EQ(report["cost"]["parameters"], report["parameters_after"]);
  EXPECT_LT(report["cost"]["flops_per_token"], report["cost_before"]["flops_per_token"]);
}

TEST(Stepwise, TwoPrunesComposeTheirLineages) {
  record::Observer observer;
  const auto original = test::tiny_model(test::tiny_config(5, 24));
  const auto sources = test::random_domains(40, 2);
  const auto once = prune_searched({original, sources, plain(0.7), observer});
  const auto twice = prune_searched({once.weights, sources, plain(0.7), observer});
  const auto& lineage = twice.weights.lineage;
  EXPECT_EQ(lineage.teacher_blocks, 5);
  const auto direct = compress::sliced(original, lineage.kept);
  ASSERT_EQ(direct.config, twice.weights.config);
  for (std::size_t unit = 0; unit < direct.units.size(); ++unit)
    EXPECT_TRUE(at::equal(direct.units[unit], twice.weights.units[unit])) << unit;
}

TEST(Stepwise, StopsAtBlocksOrChannelsWhenOnlyThoseMayGo) {
  record::Observer observer;
  const auto input = test::tiny_model(test::tiny_config(4, 24));
  auto options = options_for(0.7);
  options.blocks = false;
  EXPECT_EQ(
      prune_searched({input, test::random_domains(40, 2), options, observer}).weights.config.blocks.size(),
      4u);
  options = options_for(0.7);
  options.channels = false;
  const auto result = prune_searched({input, test::random_domains(40, 2), options, observer});
  EXPECT_EQ(architecture::mlp_width(result.weights.config.blocks[0]), 24);
}

TEST(Stepwise, AnUnreachableTargetIsRefusedBeforeAnyWork) {
  record::Observer observer;
  const auto input = test::tiny_model(test::tiny_config());
  EXPECT_THROW(prune_searched({input, {}, options_for(0.01), observer}), base::UsageError);
}

// The loss increase of its decisions is that of the evaluator that compensates, where the text can judge
// that.
TEST(Stepwise, ComparesCandidatesAfterCompensation) {
  const auto input = test::tiny_model(test::tiny_config(4));
  const auto sources = test::random_domains(40, 40, 64);
  auto options = options_for(0.9);
  options.blocks = options.heads = false;
  record::Observer observer;
  const auto report = to_json(prune_searched({input, sources, options, observer}).report);
  EXPECT_TRUE(report.at("compared_after_compensation").get<bool>());
  const auto& last = report.at("decisions").back();
  const auto candidate = architecture::kept_from_json(report.at("kept"));
  const auto split = calibrate::split_by_document(sources, prune::shares_of(options));
  const prune::Evaluator after(input, split.choosing, {.weights = {}, .fitted = &split.fitted});
  const prune::Evaluator before(input, split.choosing, {});
  EXPECT_NEAR(after.evaluate(candidate).mean.objective, last.at("objective").get<double>(), 1e-9);
  EXPECT_GT(before.evaluate(candidate).mean.objective, last.at("objective").get<double>() + 0.01);
}

TEST(Stepwise, GoesOnWhereItWasStopped) {
  const auto input = test::tiny_model(test::tiny_config());
  const auto sources = test::random_domains(40, 2);
  const test::TemporaryDirectory directory;
  const auto report = [&](const char* file, record::Observer& observer) {
    auto json =
        to_json(prune_searched({input, sources, options_for(0.5), observer, {directory / file}}).report);
    EXPECT_GT(json.at("memory_planned_bytes").get<std::int64_t>(), 0);
    return untimed(std::move(json));
  };
  record::Observer patient;
  const auto expected = report("whole.jsonl", patient);
  for (const int patience : {0, 3, 8}) {
    test::AskedTooOften observer(patience);
    EXPECT_THROW(report("parts.jsonl", observer), record::StoppedError);
  }
  EXPECT_EQ(report("parts.jsonl", patient), expected);
  EXPECT_EQ(base::read_file(directory / "parts.jsonl"), base::read_file(directory / "whole.jsonl"))
      << "nothing was measured twice";
}

TEST(Stepwise, IsTheSameEveryTime) {
  record::Observer observer;
  const auto input = test::tiny_model(test::tiny_config(4, 24), 1, at::kFloat);
  const auto report = [&] {
    return untimed(
        to_json(prune_searched({input, test::random_domains(40, 2), options_for(0.5), observer}).report));
  };
  EXPECT_EQ(report().dump(), report().dump());
}

}  // namespace
}  // namespace retort
