#include "retort/prune/searched.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "retort/architecture/counts.h"
#include "retort/base/error.h"
#include "retort/base/files.h"
#include "retort/calibrate/influence.h"
#include "retort/compress/surgery.h"
#include "retort/model/forward.h"
#include "retort/ops/tensor_allocator.h"
#include "retort/prune/model_space.h"
#include "retort/prune/plan.h"
#include "retort/prune/target.h"
#include "retort/record/stopped.h"
#include "retort/search/greedy.h"
#include "support/impatient.h"
#include "support/models_for_tests.h"
#include "support/random_text.h"
#include "support/ranks.h"
#include "support/temporary_directory.h"

namespace retort {
namespace {

using prune::prune_searched;
using prune::PruneOptions;
using prune::SearchMethod;
using prune::Units;

model::Weights small_model(std::size_t blocks = 4) {
  return test::tiny_model(test::tiny_config(blocks, 16));
}

std::vector<calibrate::SourceText> text() {
  return test::random_domains(40, 40, 64);  // five batches of a source
}

PruneOptions options_of(Units units, SearchMethod method) {
  PruneOptions options;
  options.hidden = true;
  options.target.parameters_fraction = 0.6;
  options.units = units;
  options.width_multiple = 4;
  options.search = {.method = method, .budget_tokens = 200'000, .tolerance = 0.15};
  return options;
}

class Searched : public ::testing::TestWithParam<std::tuple<Units, SearchMethod>> {};

TEST_P(Searched, EndsWithinTheBoundsWithTheModelThatItReports) {
  const auto [units, method] = GetParam();
  const auto input = small_model(6);
  const test::TemporaryDirectory directory;
  record::Observer observer;
  const auto options = options_of(units, method);
  const auto result = prune_searched({input, text(), options, observer, {directory / "search.jsonl"}});
  const auto all = architecture::num_parameters(input.config);
  const auto left = architecture::num_parameters(result.weights.config);
  EXPECT_LE(left, prune::target_parameters(input.config, options));
  EXPECT_GE(static_cast<double>(left), 0.45 * static_cast<double>(all) - 1);
  EXPECT_EQ(result.report.output, result.weights.config);
  if (options.stepwise()) {  // whose course is its decisions
    EXPECT_FALSE(std::get<std::vector<prune::Decision>>(result.report.course).empty());
  } else {
    const auto& course = std::get<prune::SearchCourse>(result.report.course);
    EXPECT_LE(course.tokens_spent, 200'000);
    EXPECT_GE(course.curve.size(), 1U);
  }
  EXPECT_TRUE(units == Units::sub_blocks || units == Units::per_layer || result.weights.config.uniform());
  // The loss increase of the saved model, computed from the beginning.
  const auto split = calibrate::split_by_document(text(), prune::shares_of(options));
  const prune::Evaluator evaluator(input, split.judging, {});
  const auto& candidate = result.report.kept;
  EXPECT_NEAR(evaluator.evaluate_exactly(compress::sliced(input, candidate)).mean.objective,
              result.report.objective_uncompensated.value(), 1e-9);
  EXPECT_NEAR(evaluator.evaluate_exactly(result.weights).mean.objective,
              result.report.evaluation.mean.objective, 1e-9);
}

INSTANTIATE_TEST_SUITE_P(
    Methods, Searched,
    ::testing::Combine(::testing::Values(Units::uniform, Units::blocks, Units::sub_blocks, Units::per_layer),
                       ::testing::Values(SearchMethod::greedy, SearchMethod::tabu, SearchMethod::evolution,
                                         SearchMethod::random, SearchMethod::influence,
                                         SearchMethod::staged)));
// Uniform units do not add up.
INSTANTIATE_TEST_SUITE_P(Additive, Searched,
                         ::testing::Combine(::testing::Values(Units::blocks, Units::sub_blocks,
                                                              Units::per_layer),
                                            ::testing::Values(SearchMethod::additive)));

class GreedyBudget : public ::testing::TestWithParam<Units> {
 protected:
  base::Json report(std::int64_t budget_tokens) const {
    auto options = options_of(GetParam(), SearchMethod::greedy);
    options.search.budget_tokens = budget_tokens;
    options.compensate = false;
    const test::TemporaryDirectory directory;
    record::Observer observer;
    return to_json(prune_searched({input_, text_, options, observer, {directory / "search.jsonl"}}).report);
  }
  const std::vector<calibrate::SourceText> text_ = test::random_domains(40, 24, 64);  // three batches
  // Budgets of many evaluations on all of the text.
  const model::Weights input_ = small_model(GetParam() == Units::blocks ? 12 : 5);
};

// A space of few units ends after few steps: what they do not need goes into candidates and text.
TEST_P(GreedyBudget, IsUsedOrAllIsCompared) {
  const auto unlimited = report(0);
  const auto all = unlimited.at("tokens_spent").get<double>();
  const auto budget = static_cast<std::int64_t>(0.6 * all);
  EXPECT_GE(report(budget).at("tokens_spent").get<double>(), 0.9 * static_cast<double>(budget));
  // Without end it is greedy search over all steps, each on all of the text that chooses.
  const auto options = options_of(GetParam(), SearchMethod::greedy);
  const auto split = calibrate::split_by_document(text_, prune::shares_of(options));
  const auto& ranked_by = options.narrows() ? split.fitted : split.choosing;
  const prune::ModelSpace space(
      input_.config, options, prune::target_parameters(input_.config, options),
      calibrate::unit_scores(calibrate::measured_scores(
          input_, calibrate::calibration_batches(ranked_by, input_.config, at::kCPU),
          prune::ranking_options(options))));
  const prune::Evaluator evaluator(input_, split.choosing, {});
  search::Journal journal(space.space(),
                          [&](std::span<const search::Task> tasks, const search::Journal::Tell& tell) {
                            for (std::size_t i = 0; i < tasks.size(); ++i)
                              tell(i, {evaluator.evaluate(space.candidate(tasks[i].state)).mean.objective});
                          },
                          {});
  const auto expected = journal.objective(search::greedy(journal), 0);
  EXPECT_NEAR(unlimited.at("searched_objective").get<double>(), expected, 1e-9);
}

INSTANTIATE_TEST_SUITE_P(Units, GreedyBudget,
                         ::testing::Values(Units::blocks, Units::sub_blocks, Units::per_layer));

// Rank 0 has what it has alone: the same candidates cost the same, so it takes the same path.
TEST(SearchedModel, RanksFindWhatOneFinds) {
  const auto input = small_model(6);
  for (const auto units : {Units::per_layer, Units::uniform}) {
    auto options = options_of(units, SearchMethod::tabu);
    const auto found = [&](comm::Group* group) {
      const test::TemporaryDirectory directory;
      record::Observer observer;
      const auto texts = text();
      const prune::PruneSetup setup{.input = input,
                                    .sources = texts,
                                    .options = options,
                                    .observer = observer,
                                    .place = {directory / "search.jsonl"},
                                    .group = group};
      return prune_searched(setup);
    };
    if (units == Units::uniform) options.search.method = SearchMethod::greedy;  // the stepwise one
    const auto expected = found(nullptr);
    for (const int ranks : {2, 3})
      test::on_ranks(ranks, [&](comm::Group& group) {
        const auto result = found(&group);
        EXPECT_EQ(result.weights.units.empty(), group.rank() != 0);
        if (group.rank() != 0) return;
        EXPECT_EQ(result.report.kept, expected.report.kept);
        EXPECT_NEAR(result.report.evaluation.mean.objective, expected.report.evaluation.mean.objective, 1e-9);
        ASSERT_EQ(result.weights.units.size(), expected.weights.units.size());
        for (std::size_t unit = 0; unit < result.weights.units.size(); ++unit)
          EXPECT_TRUE(at::allclose(result.weights.units[unit], expected.weights.units[unit], 1e-9, 1e-12));
      });
  }
}

TEST(SearchedModel, AskedToStopAllRanksDo) {
  const auto input = small_model(6);
  const auto options = options_of(Units::per_layer, SearchMethod::tabu);
  struct Impatient : record::Observer {
    void progress(std::string_view what, std::int64_t done, std::int64_t) override {
      searched |= what == "prune: tokens searched" && done > 0;
    }
    bool stop_requested() const override { return searched; }
    bool searched = false;
  };
  test::on_ranks(3, [&](comm::Group& group) {
    const test::TemporaryDirectory directory;
    Impatient impatient;
    record::Observer patient;
    const auto texts = text();
    const prune::PruneSetup setup{.input = input,
                                  .sources = texts,
                                  .options = options,
                                  .observer = group.rank() == 0 ? impatient : patient,
                                  .place = {directory / "search.jsonl"},
                                  .group = &group};
    EXPECT_THROW(prune_searched(setup), record::StoppedError);
    EXPECT_TRUE(group.failed_together());
  });
}

TEST(SearchedModel, InfluenceIsOneMinusTheCosine) {
  const auto input = small_model();
  const auto sources = test::random_domains(40, 3, 64);
  const auto batches = calibrate::calibration_batches(sources, input.config, at::kCPU);
  const auto influences = calibrate::influences(input, batches);
  ASSERT_EQ(influences.size(), 4U);
  std::vector<double> expected(4, 0);
  for (const auto& batch : batches) {  // two sources of one batch each
    auto hidden = model::embedded(input, batch.ids_N);
    for (std::size_t block = 0; block < 4; ++block) {
      const auto next = model::block_forward(model::weights_of_block(input, static_cast<std::int64_t>(block)),
                                             input.config.rms_norm_eps, hidden, batch.layout);
      const auto cosine = (hidden * next).sum(1) / (hidden.norm(2, 1) * next.norm(2, 1));
      expected[block] += (1 - cosine.mean().item<double>()) / 2;
      hidden = next;
    }
  }
  for (std::size_t block = 0; block < 4; ++block) {
    EXPECT_NEAR(influences[block].block, expected[block], 1e-9);
    EXPECT_GT(influences[block].attention, 0);
    EXPECT_GT(influences[block].mlp, 0);
  }
  // A branch that adds nothing has none.
  auto silent = model::converted(input, at::kDouble);
  silent.tensor("model.layers.2.self_attn.o_proj.weight").zero_();
  const auto after = calibrate::influences(silent, batches)[2];
  EXPECT_NEAR(after.attention, 0, 1e-12);
  EXPECT_NEAR(after.block, after.mlp, 1e-12);
}

// What a machine measures of a small model may make a target unreachable, so made-up times take its place.
TEST(SearchedModel, ReachesATimeThatIsMeasuredOnce) {
  const auto input = small_model();
  record::Observer observer;
  const test::TemporaryDirectory directory;
  const auto file = directory / "token_times.json";
  auto options = options_of(Units::per_layer, SearchMethod::additive);
  options.hidden = false;
  options.target = {.time = {.latency = 0.7, .context = 32}};
  const auto run = [&] {
    return prune_searched({input, text(), options, observer, {directory / "search.jsonl"}}).report;
  };
  const auto measure = [&] {
    try {
      (void)run();
    } catch (const base::UsageError&) {
    }
    return base::parse_json(base::read_file(file));
  };
  auto saved = measure();
  EXPECT_EQ(saved.at("times").at("batch"), 1);
  for (auto& curve : saved["times"]["seconds"])
    for (auto& point : curve) point[1] = 0.001 * point.at(0).get<double>();
  saved["times"]["other_seconds"] = 0.001;
  base::write_file_atomically(file, saved.dump());

  const auto report = run();
  const auto& times = *report.size.times();
  EXPECT_EQ(times.to_json(), saved.at("times"));
  EXPECT_LE(times.seconds(report.output), 0.701 * times.seconds(report.input));
  EXPECT_GE(times.seconds(report.output), 0.549 * times.seconds(report.input));
  const auto json = prune::to_json(report);
  EXPECT_FALSE(json.contains("parameters_target"));
  EXPECT_NEAR(json.at("latency").at("target_seconds"), 0.7 * times.seconds(report.input), 1e-6);
  options.target.time.batch = 2;
  EXPECT_EQ(measure().at("times").at("batch"), 2);
}

TEST(SearchedModel, TabuFindsTheBestOfAllSubsets) {
  const auto input = small_model();
  record::Observer observer;
  const test::TemporaryDirectory directory;
  auto options = options_of(Units::sub_blocks, SearchMethod::tabu);
  options.search.budget_tokens = 2'000'000;
  const auto result = prune_searched({input, text(), options, observer, {directory / "search.jsonl"}});

  const auto target = prune::target_parameters(input.config, options);
  const auto split = calibrate::split_by_document(text(), prune::shares_of(options));
  const prune::Evaluator evaluator(input, split.choosing, {});
  const prune::ModelSpace space(input.config, options, target, {});
  double best = 1e300;
  int feasible = 0;
  for (std::int32_t bits = 0; bits < 256; ++bits) {
    search::State state(8);
    for (std::size_t unit = 0; unit < 8; ++unit) state[unit] = bits >> unit & 1;
    if (!space.space().feasible(state)) continue;
    ++feasible;
    best = std::min(best, evaluator.evaluate(space.candidate(state)).mean.objective);
  }
  EXPECT_GT(feasible, 5);
  EXPECT_NEAR(result.report.believed.candidate, best, 1e-12);
}

// The 512 most likely of 3,000 tokens order candidates otherwise than all of them.
TEST(SearchedModel, TheResultIsTheBestFinalistByTheWholeVocabulary) {
  record::Observer observer;
  int other_order = 0;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    auto config = test::tiny_config(6, 16, /*tied=*/false);
    config.vocab_size = 3000;
    const auto input = test::tiny_model(config, seed);
    auto options = options_of(Units::blocks, SearchMethod::random);
    options.target.parameters_fraction = 0.97;
    options.search.tolerance = 0.02;
    options.search.finalists = 8;
    const test::TemporaryDirectory directory;
    const auto report =
        to_json(prune_searched(
                    {input, test::random_domains(3000, 3), options, observer, {directory / "search.jsonl"}})
                    .report);
    const auto& finalists = report.at("finalists");
    ASSERT_GT(finalists.size(), 2U);
    EXPECT_NEAR(finalists[0].at("objective"), report.at("believed").at("saved").get<double>(), 1e-9);
    EXPECT_EQ(finalists[0].at("searched_objective"), report.at("searched_objective"));
    for (std::size_t i = 1; i < finalists.size(); ++i) {
      EXPECT_LE(finalists[i - 1].at("objective"), finalists[i].at("objective"));
      other_order +=
          finalists[i - 1].at("searched_objective") > finalists[i].at("searched_objective") ? 1 : 0;
    }
  }
  EXPECT_GT(other_order, 0);
}

TEST(SearchedModel, GoesOnWhereItWasStopped) {
  const auto input = small_model();
  const auto options = options_of(Units::per_layer, SearchMethod::tabu);
  const test::TemporaryDirectory directory;
  record::Observer patient;
  const auto expected =
      to_json(prune_searched({input, text(), options, patient, {directory / "whole.jsonl"}}).report);
  for (const int questions : {1, 17, 60}) {
    test::AskedTooOften observer(questions);
    EXPECT_THROW(prune_searched({input, text(), options, observer, {directory / "parts.jsonl"}}),
                 record::StoppedError);
  }
  // Half a line, as a crash may leave it.
  std::ofstream(directory / "parts.jsonl", std::ios::app) << "{\"state\": [0, 1";
  auto resumed =
      to_json(prune_searched({input, text(), options, patient, {directory / "parts.jsonl"}}).report);
  for (const char* key : {"kept", "curve", "evaluations", "tokens_spent", "objective"})
    EXPECT_EQ(resumed.at(key), expected.at(key)) << key;
  EXPECT_EQ(base::read_file(directory / "parts.jsonl"), base::read_file(directory / "whole.jsonl"));
  // Another search does not take this one's evaluations for its own.
  auto other = options;
  other.objective.kl = 0;
  const auto changed =
      to_json(prune_searched({input, text(), other, patient, {directory / "parts.jsonl"}}).report);
  EXPECT_NE(changed.at("objective"), expected.at("objective"));
}

TEST(SearchedModel, LeavesHeadsAloneWhereTheyAreNotToGo) {
  const auto input = small_model();
  const test::TemporaryDirectory directory;
  record::Observer observer;
  auto options = options_of(Units::per_layer, SearchMethod::additive);
  options.target.parameters_fraction = 0.8;
  options.heads = false;
  const auto result = prune_searched({input, text(), options, observer, {directory / "search.jsonl"}});
  for (const auto& block : result.weights.config.blocks) {
    ASSERT_TRUE(block.attention.has_value());
    EXPECT_EQ(block.attention->num_kv_heads, input.config.blocks.front().attention->num_kv_heads);
  }
}

// What a search minimises is the loss increase after compensation, and without it another one.
TEST(SearchedModel, ComparesCandidatesAfterCompensation) {
  const auto input = small_model();
  const test::TemporaryDirectory directory;
  record::Observer observer;
  auto options = options_of(Units::per_layer, SearchMethod::additive);
  options.hidden = false;
  for (const bool after : {true, false}) {
    options.search.after_compensation = after;
    const auto report =
        to_json(prune_searched({input, text(), options, observer, {directory / (after ? "after" : "before")}})
                    .report);
    EXPECT_EQ(report.at("compared_after_compensation").get<bool>(), after);
    const auto split = calibrate::split_by_document(text(), prune::shares_of(options));
    const prune::Evaluator same(input, split.choosing,
                                {.weights = {}, .fitted = after ? &split.fitted : nullptr});
    const prune::Evaluator other(input, split.choosing,
                                 {.weights = {}, .fitted = after ? nullptr : &split.fitted});
    const auto candidate = architecture::kept_from_json(report.at("kept"));
    const auto searched = report.at("searched_objective").get<double>();
    EXPECT_NEAR(same.evaluate(candidate).mean.objective, searched, 1e-9);
    EXPECT_GT(std::abs(other.evaluate(candidate).mean.objective - searched), 0.001);
  }
}

// Fits of layers one after the other are taken where they are better than what was compared, and only there.
TEST(SearchedModel, IsSavedNoWorseThanItWasCompared) {
  record::Observer observer;
  int alone = 0, in_turn = 0;
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    const auto input = test::tiny_model(test::tiny_config(4, 16), seed);
    auto options = options_of(Units::per_layer, SearchMethod::additive);
    options.hidden = false;
    options.target.parameters_fraction = 0.85;
    const test::TemporaryDirectory directory;
    const auto result = prune_searched({input, text(), options, observer, {directory / "search.jsonl"}});
    const auto& believed = result.report.believed;
    EXPECT_LE(believed.saved, believed.candidate + 1e-6) << seed;
    ASSERT_TRUE(result.report.compensation);
    (result.report.compensation->each_alone ? alone : in_turn) += 1;
  }
  EXPECT_GT(alone, 0);
  EXPECT_GT(in_turn, 0);
}

TEST(SearchedModel, SaysWhatIsImpossible) {
  const auto input = small_model();
  const test::TemporaryDirectory directory;
  record::Observer observer;
  const auto message = [&](const PruneOptions& options) {
    return test::message_of<base::UsageError>([&] {
      prune_searched({input, text(), options, observer, {directory / "search.jsonl"}});
    });
  };
  auto options = options_of(Units::per_layer, SearchMethod::tabu);
  options.target.parameters_fraction = 0.01;
  EXPECT_SAYS(message(options), "target");
  options = options_of(Units::per_layer, SearchMethod::random);
  options.search.budget_tokens = 10;
  EXPECT_SAYS(message(options), "budget_tokens");
  options = options_of(Units::uniform, SearchMethod::additive);
  EXPECT_SAYS(message(options), "add up");
}

// Whole blocks reach few sizes.  The result has the nearest, be it above the target or below it.
TEST(SearchedModel, TakesTheNearestSizeThatTheUnitsReach) {
  const auto input = small_model();
  const auto all = architecture::num_parameters(input.config);
  const auto block =
      all - architecture::parameters_of(input.config,
                                        architecture::without_block(architecture::whole(input.config), 0));
  const test::TemporaryDirectory directory;
  record::Observer observer;
  auto options = options_of(Units::blocks, SearchMethod::greedy);
  options.search.tolerance = 0;
  const auto left = [&](const std::string& name) {
    const auto result = prune_searched({input, text(), options, observer, {directory / name}});
    return architecture::num_parameters(result.weights.config);
  };
  options.target = {.parameters = all - block + block / 4};
  EXPECT_EQ(left("above"), all - block);
  EXPECT_SAYS(describe(work_of(input.config, 1000, options)),
              base::join("nearest size is taken, ", all - block));
  options.target = {.parameters = all - block - block / 4};
  EXPECT_EQ(left("below"), all - block);
  options.target = {.parameters = all - block / 4};
  EXPECT_EQ(left("first"), all - block) << "a block goes, though the whole model is nearer";
  options.target = {.blocks = std::ssize(input.config.blocks) - 1};
  EXPECT_EQ(left("blocks"), all - block);
  EXPECT_EQ(describe(work_of(input.config, 1000, options)).find("nearest"), std::string::npos);
}

// Keeps what is told, and how far the search had come.
class Listener : public record::Observer {
 public:
  void message(record::Level, std::string_view text) override { said += std::string(text) + "\n"; }
  void progress(std::string_view, std::int64_t, std::int64_t) override { ++steps; }
  std::string said;
  int steps = 0;
};

// Whatever comes first in a method, below the least budget nothing is measured, and with it a model is found.
TEST(SearchedModel, FindsAModelWithTheLeastBudgetThatItNames) {
  const auto input = small_model();
  const test::TemporaryDirectory directory;
  for (const auto units : {Units::per_layer, Units::uniform})
    for (const auto method :
         {SearchMethod::additive, SearchMethod::tabu, SearchMethod::greedy, SearchMethod::staged,
          SearchMethod::influence, SearchMethod::evolution, SearchMethod::random}) {
      auto options = options_of(units, method);
      if (options.stepwise() || (units == Units::uniform && method == SearchMethod::additive)) continue;
      SCOPED_TRACE(base::join(base::word(units), " ", base::word(method)));
      options.compensate = false;
      options.search.budget_tokens = 100;
      Listener listener;
      const auto search = [&] {
        return prune_searched({input,
                               text(),
                               options,
                               listener,
                               {directory / base::join(base::word(units), base::word(method), ".jsonl")}});
      };
      const auto refused = test::message_of<base::UsageError>([&] { (void)search(); });
      EXPECT_SAYS(refused, "budget_tokens is 100");
      EXPECT_EQ(listener.steps, 0);
      options.search.budget_tokens = std::stoll(refused.substr(refused.find("at least ") + 9));
      const auto report = search().report;
      EXPECT_LE(std::get<prune::SearchCourse>(report.course).tokens_spent, options.search.budget_tokens);
    }
}

// The least budget that it names is one, and below it nothing is measured.
TEST(SearchedModel, RefusesABudgetThatCannotPayItsProbes) {
  const auto input = small_model();
  const test::TemporaryDirectory directory;
  auto options = options_of(Units::per_layer, SearchMethod::additive);
  options.search.budget_tokens = 2'000;
  Listener listener;
  const auto refused = test::message_of<base::UsageError>([&] {
    prune_searched({input, text(), options, listener, {directory / "search.jsonl"}});
  });
  EXPECT_SAYS(refused, "budget_tokens is 2000");
  EXPECT_EQ(listener.steps, 0);
  options.search.budget_tokens = std::stoll(refused.substr(refused.find("at least ") + 9));
  const auto report = prune_searched({input, text(), options, listener, {directory / "search.jsonl"}}).report;
  EXPECT_LE(std::get<prune::SearchCourse>(report.course).tokens_spent, options.search.budget_tokens);
  options.search.budget_tokens = -1;
  const auto usual = prune_searched({input, text(), options, listener, {directory / "usual.jsonl"}}).report;
  EXPECT_EQ(std::get<prune::SearchCourse>(usual.course).tokens_budget, 400'000);
}

// Text that only judges is neither fitted to nor chosen by: whatever it says, the same model is made.
TEST(SearchedModel, DocumentsThatJudgeChangeNothing) {
  const auto input = small_model();
  const test::TemporaryDirectory directory;
  record::Observer observer;
  const auto options = options_of(Units::per_layer, SearchMethod::additive);
  auto sources = text();
  const auto judging = calibrate::split_by_document(sources, prune::shares_of(options)).judging;
  const auto& last = judging.front().sequences.front().ids;
  const auto first = prune_searched({input, sources, options, observer, {directory / "first.jsonl"}});
  int changed = 0;
  for (auto& source : sources)
    for (auto& sequence : source.sequences) {
      const auto found = std::search(sequence.ids.begin(), sequence.ids.end(), last.begin(), last.end());
      if (found == sequence.ids.end()) continue;
      std::reverse(found, found + std::ssize(last));
      ++changed;
    }
  ASSERT_EQ(changed, 1);
  const auto second = prune_searched({input, sources, options, observer, {directory / "second.jsonl"}});
  EXPECT_EQ(first.report.kept, second.report.kept);
  EXPECT_EQ(first.report.believed.saved, second.report.believed.saved);
  EXPECT_NE(first.report.evaluation.mean.objective, second.report.evaluation.mean.objective);
  for (std::size_t unit = 0; unit < first.weights.units.size(); ++unit)
    EXPECT_TRUE(at::equal(first.weights.units[unit], second.weights.units[unit])) << unit;
}

TEST(SearchedModel, WarnsOfTooLittleTextBeforeTheFirstPass) {
  const auto input = small_model();
  const test::TemporaryDirectory directory;
  const auto options = options_of(Units::per_layer, SearchMethod::additive);
  Listener few, many;
  prune_searched({input, test::random_domains(40, 4, 24), options, few, {directory / "few.jsonl"}});
  EXPECT_SAYS(few.said,
              "tokens of each input; compensation will gain little: set calibration_tokens to 32768");
  prune_searched({input, text(), options, many, {directory / "many.jsonl"}});
  EXPECT_EQ(many.said.find("gain little"), std::string::npos) << many.said;
}

// With much text for a small model, so that what depends on the text is what counts.
TEST(SearchedModel, NeedsTheMemoryThatItStatesAndGivesTheSameBitsFromDisk) {
  ops::install_tensor_allocator();
  auto config = test::tiny_config();
  config.hidden_size = 64;
  config.blocks.assign(4,
                       {.attention = architecture::Attention{4, 2, 16}, .mlp = architecture::DenseMlp{128}});
  const auto weights = test::tiny_model(config, 1, at::kFloat);
  const auto sources = test::random_domains(40, 40, 64);
  auto options = options_of(Units::per_layer, SearchMethod::greedy);
  options.hidden = false;
  options.search.budget_tokens = 40'000;
  const auto before = ops::live_tensor_bytes() - 4 * architecture::num_parameters(config);
  const auto plan = [&](const prune::HiddenStates& states) {
    const auto text = prune::tokens_of(calibrate::split_by_document(sources, prune::shares_of(options)));
    EXPECT_EQ(text.all, 2 * 40 * 64);
    EXPECT_LE(text.choosing, prune::most_tokens(text.all, options).choosing);
    EXPECT_LE(text.judging, prune::most_tokens(text.all, options).judging);
    return prune::plan_prune(config, 4, text, 2048, options, states, /*offloaded=*/false,
                             ops::path_of(weights.options().device()))
        .total_bytes();
  };
  const auto expect_same_bits_within = [&](const std::vector<std::int64_t>& plans) {
    base::Json expected;
    for (const auto needs : plans) {
      const test::TemporaryDirectory directory;
      record::Observer observer;
      ops::reset_peak_tensor_bytes();
      auto report = to_json(prune_searched({weights,
                                            sources,
                                            options,
                                            observer,
                                            {.saved_file = directory / "search.jsonl", .memory = needs}})
                                .report);
      const auto needed = ops::peak_tensor_bytes() - before;
      EXPECT_LT(needed, needs);
      // But for room for candidates, which this search does not fill.  The plan is of the widest layer and of
      // the longest text; 0.57 to 0.72 of it was taken.
      EXPECT_GT(needed,
                0.5 * static_cast<double>(needs - report.at("memory_unused_bytes").get<std::int64_t>()));
      EXPECT_EQ(report.at("memory_planned_bytes").get<std::int64_t>(), needs);
      for (const auto* other :
           {"memory_planned_bytes", "memory_unused_bytes", "seconds", "speed", "cost", "cost_before"})
        report.erase(other);
      for (auto& finalist : report["finalists"]) finalist.erase("seconds");
      if (expected.is_null()) expected = report;
      EXPECT_EQ(report, expected) << needs;
    }
  };
  for (const auto method : {SearchMethod::tabu, SearchMethod::greedy}) {
    options.search.method = method;
    expect_same_bits_within({plan({}), plan({.on_disk = true}), plan({.on_disk = true, .cache_bytes = 0})});
  }
  for (const auto ranking : {calibrate::ChannelRanking::taylor, calibrate::ChannelRanking::obs}) {
    const test::TemporaryDirectory directory;
    record::Observer observer;
    options.channel_ranking = ranking;
    ops::reset_peak_tensor_bytes();
    prune_searched({weights, sources, options, observer, {directory / "search.jsonl"}});
    EXPECT_LT(ops::peak_tensor_bytes() - before, plan({}));
  }
  record::Observer observer;
  const test::TemporaryDirectory directory;
  const auto too_little = plan({.on_disk = true, .cache_bytes = 0}) - 1;
  EXPECT_THROW(prune_searched({weights,
                               sources,
                               options,
                               observer,
                               {.saved_file = directory / "search.jsonl", .memory = too_little}}),
               base::MemoryError);
}

}  // namespace
}  // namespace retort
