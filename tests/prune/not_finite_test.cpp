// Candidates whose activations overflow, of a model whose own do not.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "retort/base/error.h"
#include "retort/prune/searched.h"
#include "retort/record/stopped.h"
#include "support/models_for_tests.h"
#include "support/random_text.h"
#include "support/stepwise_options.h"
#include "support/temporary_directory.h"

namespace retort {
namespace {

using prune::PruneOptions;
using prune::SearchMethod;

// Nothing writes hidden feature 3 but channels 11 and 12 of MLP 1, which always cancel out; where one of them
// goes without the other, the queries and keys of block 2 overflow.  Of 16 channels 11 ranks above 12 as its
// equal, and 13 to 15 rank below both.
model::Weights overflowing_model() {
  auto input = test::tiny_model(test::tiny_config(4));
  const auto tensor = [&](std::int64_t block, const char* name) {
    return input.tensor(base::join("model.layers.", block, ".", name, ".weight"));
  };
  input.tensor("model.embed_tokens.weight").select(1, 3).zero_();
  for (std::int64_t block = 0; block < 4; ++block)
    for (const char* name : {"self_attn.o_proj", "mlp.down_proj"}) tensor(block, name)[3].zero_();
  for (const char* name : {"mlp.gate_proj", "mlp.up_proj"}) {
    tensor(1, name)[12].copy_(tensor(1, name)[11]);
    tensor(1, name).narrow(0, 13, 3).mul_(0.01);
    tensor(1, name).narrow(0, 0, 11).mul_(3);
  }
  const auto down = tensor(1, "mlp.down_proj");
  down.select(1, 12).copy_(down.select(1, 11));
  down[3][11] = 1, down[3][12] = -1;
  for (const char* name : {"self_attn.q_proj", "self_attn.k_proj"}) tensor(2, name).select(1, 3).fill_(1e200);
  return input;
}

std::vector<calibrate::SourceText> text() {
  return test::random_domains(40, 40, 64);  // five batches of a source
}

PruneOptions options_of(SearchMethod method) {
  PruneOptions options;
  options.target.parameters_fraction = 0.6;
  options.units = prune::Units::per_layer;
  options.width_multiple = 4;
  options.compensate = false;
  options.search = {.method = method, .budget_tokens = 200'000, .tolerance = 0.15};
  return options;
}

class Listener : public record::Observer {
 public:
  explicit Listener(int questions = 1 << 30) : left_(questions) {}
  void message(record::Level level, std::string_view text) override {
    if (level == record::Level::warning) warnings.append(text).append("\n");
  }
  bool stop_requested() const override { return left_-- <= 0; }
  std::string warnings;

 private:
  mutable int left_;
};

base::Json without_times(base::Json report) {
  for (const auto* key : {"memory_unused_bytes", "seconds", "speed", "cost", "cost_before"})
    report.erase(key);
  return report;
}

TEST(NotFinite, ACandidateOfStepwiseGreedyLoses) {
  const auto input = overflowing_model();
  auto options = test::stepwise_options();
  options.target.parameters_fraction = 0.8;
  options.width_multiple = 4;
  options.heads = options.compensate = false;
  const test::TemporaryDirectory directory;
  Listener observer;
  const auto run = [&](const char* file, record::Observer& of) {
    return without_times(
        to_json(prune::prune_searched(
                    {input, test::random_domains(40, 2), options, of, {.saved_file = directory / file}})
                    .report));
  };
  const auto report = run("whole.jsonl", observer);
  EXPECT_SAYS(observer.warnings, "the loss increase of the candidate 'narrow MLPs to 12' is not finite");
  const auto& first = report.at("decisions")[0];
  EXPECT_EQ(first.at("action"), "drop_block");
  double narrow = 0;
  for (const auto& candidate : first.at("candidates"))
    if (candidate.value("width", 0) == 12) candidate.at("objective").get_to(narrow);
  EXPECT_EQ(narrow, std::numeric_limits<double>::infinity());
  const auto lines = base::read_file(directory / "whole.jsonl");
  const auto evaluations = std::count(lines.begin(), lines.end(), '\n') - 1;
  ASSERT_GT(evaluations, 4);
  for (int questions = 0; questions < evaluations; ++questions) {
    const auto file = base::join("parts", questions, ".jsonl");
    Listener stopping(questions), patient;
    EXPECT_THROW(run(file.c_str(), stopping), record::StoppedError);
    EXPECT_EQ(run(file.c_str(), patient), report) << questions;
  }
}

class NotFiniteBy : public ::testing::TestWithParam<SearchMethod> {};

TEST_P(NotFiniteBy, ACandidateLosesAndTheSearchGoesOn) {
  const auto input = overflowing_model();
  const auto options = options_of(GetParam());
  const test::TemporaryDirectory directory;
  Listener observer;
  const auto run = [&](const char* file, record::Observer& of) {
    return to_json(
        prune::prune_searched({input, text(), options, of, {.saved_file = directory / file}}).report);
  };
  const auto report = run("whole.jsonl", observer);
  EXPECT_GT(report.at("evaluations_not_finite").get<int>(), 0);
  EXPECT_SAYS(observer.warnings, "is not finite, so it loses against all others");
  for (const char* key : {"objective", "searched_objective"})
    EXPECT_TRUE(std::isfinite(report.at(key).get<double>())) << key;
  for (const auto& finalist : report.at("finalists"))
    EXPECT_TRUE(std::isfinite(finalist.at("objective").get<double>()));
  Listener stopping(10), patient;
  EXPECT_THROW(run("parts.jsonl", stopping), record::StoppedError);
  const auto resumed = run("parts.jsonl", patient);
  for (const char* key : {"kept", "curve", "evaluations", "evaluations_not_finite", "tokens_spent"})
    EXPECT_EQ(resumed.at(key), report.at(key)) << key;
  EXPECT_EQ(base::read_file(directory / "parts.jsonl"), base::read_file(directory / "whole.jsonl"));
}

INSTANTIATE_TEST_SUITE_P(Methods, NotFiniteBy,
                         ::testing::Values(SearchMethod::greedy, SearchMethod::tabu, SearchMethod::evolution,
                                           SearchMethod::random, SearchMethod::additive,
                                           SearchMethod::staged));

TEST(NotFinite, TheModelItselfIsRefused) {
  auto input = test::tiny_model(test::tiny_config(4));
  input.tensor("model.norm.weight")[0] = std::numeric_limits<double>::infinity();
  Listener observer;
  const test::TemporaryDirectory directory;
  const auto message = [&](auto&& run) { return test::message_of<base::ValidationError>(run); };
  auto stepwise = test::stepwise_options();
  stepwise.target.parameters_fraction = 0.8;
  stepwise.width_multiple = 4;
  EXPECT_SAYS(message([&] {
                prune::prune_searched({input, text(), stepwise, observer});
              }),
              "losses on 'first'");
  EXPECT_SAYS(message([&] {
                prune::prune_searched({input,
                                       text(),
                                       options_of(SearchMethod::random),
                                       observer,
                                       {.saved_file = directory / "search.jsonl"}});
              }),
              "losses on 'first'");
}

}  // namespace
}  // namespace retort
