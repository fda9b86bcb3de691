// Four steps of distillation against torch: losses, gradient norms, rates, held-out losses and weights.
#include <cmath>
#include <set>

#include "retort/architecture/counts.h"
#include "retort/base/error.h"
#include "retort/record/metrics_line.h"
#include "retort/train/batches.h"
#include "retort/train/step_flops.h"
#include "support/models_for_tests.h"
#include "support/oracle_case.h"
#include "support/tolerance.h"
#include "train/training.h"

namespace retort {
namespace {

using test::Training;
using test::Witness;

struct Case {
  const char* name;
  at::ScalarType dtype;
};

optim::OptimOptions optim_of(const base::Json& json) {
  return {.lr = json.at("lr"),
          .embedding_lr = json.at("embedding_lr"),
          .beta1 = json.at("beta1"),
          .beta2 = json.at("beta2"),
          .eps = json.at("eps"),
          .weight_decay = json.at("weight_decay"),
          .clip_norm = json.at("clip_norm"),
          .warmup_steps = json.at("warmup_steps"),
          .final_lr_fraction = json.at("final_lr_fraction")};
}

std::vector<train::HeldOutSet> held_out_of(const base::Json& json) {
  std::vector<train::HeldOutSet> sets;
  for (const auto& [source, set] : json.items()) {
    sets.push_back({source, {}});
    for (const auto& micro_batch : set.at("windows")) {
      std::vector<data::Sequence> sequences;
      for (const auto& window : micro_batch)
        sequences.push_back(
            {.ids = window.at("ids"), .targets = window.at("targets"), .starts = window.at("starts")});
      sets.back().batches.push_back(model::packed_text(sequences, at::kCPU));
    }
  }
  return sets;
}

class Steps : public test::TrainingTest, public ::testing::WithParamInterface<Case> {
 protected:
  base::Path folder() const { return test::oracles("train") / "cases" / GetParam().name; }

  test::Given given() const {
    test::Given given;
    given.student_files = folder() / "student";
    given.teacher_files = folder() / "teacher";
    given.masked = expected_.at("masked");
    given.dtype = GetParam().dtype;
    given.options = test::small_options(4);
    given.options.packing.shuffle_documents = given.options.packing.shuffle_sequences = 1;
    given.options.optim = optim_of(expected_.at("optim"));
    given.options.evaluate_every_steps = 1;
    const auto& weights = expected_.at("losses");
    given.losses = {
        {.kind = loss::LossKind::cross_entropy, .weight = weights.at("cross_entropy")},
        {.kind = loss::LossKind::kl_divergence, .weight = weights.at("kl_divergence"), .temperature = 3},
        {.kind = loss::LossKind::jensen_shannon,
         .weight = weights.at("jensen_shannon"),
         .temperature = 3,
         .beta = 0.3},
        {.kind = loss::LossKind::total_variation, .weight = weights.at("total_variation"), .temperature = 3},
        {.kind = loss::LossKind::squarehead, .weight = weights.at("squarehead")}};
    data::SourceOptions source;
    source.name = "documents";
    source.paths = {(test::oracles("train") / "text.jsonl").string()};
    source.held_out.fraction = 0;
    given.sources = {source};
    return given;
  }

  void expect_near(double actual, double expected, const std::string& what) const {
    EXPECT_NEAR(actual, expected, test::tolerance(GetParam().dtype) * expected) << what;
  }
  void expect_report(const record::StepReport& actual, const base::Json& expected) const;
  void expect_held_out(const std::vector<base::Json>& lines) const;
  void expect_weights(const model::Weights& actual) const;

  base::Json expected_ = test::json_file(folder() / "expected.json");
};

void Steps::expect_report(const record::StepReport& actual, const base::Json& expected) const {
  const auto step = base::join("step ", actual.step, ", ");
  const std::map<std::string, double> parts(actual.parts.begin(), actual.parts.end());
  ASSERT_EQ(parts.size(), expected.at("parts").size());
  for (const auto& [name, value] : expected.at("parts").items())
    expect_near(parts.at(name), value, step + name);
  expect_near(actual.loss, expected.at("loss"), step + "loss");
  expect_near(actual.gradient_norm, expected.at("gradient_norm"), step + "gradient norm");
  EXPECT_DOUBLE_EQ(actual.lr, expected.at("lr").get<double>()) << step;
}

// Before the first step, and after each.
void Steps::expect_held_out(const std::vector<base::Json>& lines) const {
  ASSERT_EQ(lines.size(), 5U);
  for (std::size_t step = 0; step < lines.size(); ++step)
    for (const auto& [source, set] : expected_.at("held_out").items())
      expect_near(lines[step].at("held_out").at(source), set.at("losses").at(step),
                  base::join("held-out loss of ", source, " after step ", step));
}

// What the steps changed, of each tensor: the weights themselves hide a step's size.
void Steps::expect_weights(const model::Weights& actual) const {
  const auto before = model::load_weights(folder() / "student", at::kDouble, at::kCPU);
  const auto expected = model::load_weights(folder() / "trained", at::kDouble, at::kCPU);
  for (std::size_t unit = 0; unit < expected.units.size(); ++unit)
    for (const auto& tensor : expected.layout.units[unit].tensors) {
      const auto start = before.tensor(unit, tensor);
      test::expect_close(actual.tensor(unit, tensor).to(at::kDouble) - start,
                         expected.tensor(unit, tensor) - start, test::update_tolerance(GetParam().dtype),
                         tensor.name.c_str());
    }
}

TEST_P(Steps, EqualThoseOfTorch) {
  const auto given = this->given();
  const auto run = place("run");
  Training training(given, run);
  Witness witness;
  ASSERT_TRUE(training.run(witness, held_out_of(expected_.at("held_out"))).finished);
  ASSERT_EQ(witness.reports.size(), expected_.at("steps").size());
  for (std::size_t step = 0; step < witness.reports.size(); ++step)
    expect_report(witness.reports[step], expected_.at("steps").at(step));
  expect_held_out(record::read_metrics(run / "metrics.jsonl"));
  expect_weights(training.trained());
}

std::set<std::string> names_and_sum(const record::NamedNumbers& values, double* sum) {
  std::set<std::string> names;
  for (const auto& [name, value] : values) names.insert(name), *sum += value;
  return names;
}

TEST_P(Steps, KeepNoTimesWithoutAProfile) {
  auto given = this->given();
  given.options.step_profile = false;
  const auto run = place("run");
  Training training(given, run);
  Witness witness;
  training.run(witness, {});
  std::int64_t steps = 0;
  for (const auto& json : record::read_metrics(run / "metrics.jsonl")) {
    const auto line = record::metrics_line(json);
    steps += line.seconds.has_value() ? 1 : 0;
    EXPECT_TRUE(line.phase_seconds.empty() && line.operation_seconds.empty());
  }
  EXPECT_GT(steps, 0);
}

TEST_P(Steps, NameWhereTheirTimeWent) {
  const auto given = this->given();
  const auto run = place("run");
  Training training(given, run);
  Witness witness;
  const auto outcome = training.run(witness, {});
  double before = 0;
  for (const auto& json : record::read_metrics(run / "metrics.jsonl")) {
    const auto line = record::metrics_line(json);
    double sum = 0, in_operations = 0;
    EXPECT_EQ(names_and_sum(line.phase_seconds, &sum),
              (std::set<std::string>{"data", "student_forward", "teacher_forward", "hidden_losses", "head",
                                     "backward", "update"}));
    EXPECT_LE(std::abs(sum - (line.seconds.value() - before)), 1e-3) << "no time is counted twice or lost";
    before = line.seconds.value();
    EXPECT_EQ(names_and_sum(line.operation_seconds, &in_operations),
              (std::set<std::string>{"product", "attention", "norm", "rotary", "swiglu", "hidden_losses",
                                     "logit_losses", "optimizer"}));
    EXPECT_GT(in_operations, 0);
    EXPECT_LE(in_operations, sum + 1e-5);
  }
  for (const auto* parts :
       {&outcome.result.phase_flops_per_token, &outcome.result.operation_flops_per_token}) {
    double flops = 0;
    names_and_sum(*parts, &flops);
    EXPECT_DOUBLE_EQ(flops, outcome.result.flops_per_token);
  }
}

TEST(StepFlops, AreTheSumOfTheirPartsWhereNoLossReadsTheTeachersLogits) {
  const auto student = test::tiny_config(2), teacher = test::tiny_config(3);
  const auto all = [&](bool teacher_logits) {
    const auto flops = train::step_flops(student, &teacher, teacher_logits, 32);
    for (const auto* parts : {&flops.by_phase, &flops.by_operation}) {
      double sum = 0;
      names_and_sum(*parts, &sum);
      EXPECT_DOUBLE_EQ(sum, flops.all);
    }
    return flops.all;
  };
  EXPECT_DOUBLE_EQ(all(true) - all(false), architecture::head_flops_per_token(teacher));
}

INSTANTIATE_TEST_SUITE_P(All, Steps,
                         ::testing::Values(Case{"untied", at::kFloat}, Case{"tied", at::kFloat},
                                           Case{"masked", at::kFloat}, Case{"untied", at::kBFloat16},
                                           Case{"masked", at::kBFloat16}),
                         [](const auto& test) {
                           return std::string(test.param.name) + at::toString(test.param.dtype);
                         });

}  // namespace
}  // namespace retort
