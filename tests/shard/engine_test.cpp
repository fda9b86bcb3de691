// The engine's gradients against autograd through the whole model, however the step is cut.
#include "retort/shard/engine.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "loss/formulas.h"
#include "retort/loss/squarehead.h"
#include "retort/ops/reference/formulas.h"
#include "support/reference_model.h"
#include "support/tolerance.h"

namespace retort {
namespace {

using test::expect_close;

constexpr std::int64_t kSequences = 4, kLength = 11, kVocab = 61;

// Four packed sequences, each of two documents; some rows have no target.
struct Step {
  Step() {
    at::manual_seed(21);
    ids = at::randint(0, kVocab, {kSequences, kLength}, at::kLong);
    targets = at::randint(0, kVocab, {kSequences, kLength}, at::kLong);
    for (std::int64_t s = 0; s < kSequences; ++s) targets[s][s + 2] = -1;
    targets[1].narrow(0, 4, 5).fill_(-1);
  }
  double num_targets(std::int64_t first = 0, std::int64_t count = kSequences) const {
    return targets.narrow(0, first, count).ge(0).sum().item<double>();
  }
  std::vector<std::int64_t> starts(std::int64_t first, std::int64_t count) const {
    std::vector<std::int64_t> list;
    for (std::int64_t s = 0; s < count; ++s) {
      list.push_back(s * kLength);
      list.push_back(s * kLength + first + s +
                     3);  // the second document begins after the row without a target
    }
    list.push_back(count * kLength);
    return list;
  }
  shard::MicroBatch micro_batch(std::int64_t first, std::int64_t count) const {
    std::vector<std::int64_t> bounds;
    for (std::int64_t s = 0; s <= count; ++s) bounds.push_back(s * kLength);
    return {ids.narrow(0, first, count).flatten(), targets.narrow(0, first, count).flatten(), bounds,
            starts(first, count), static_cast<std::int64_t>(num_targets(first, count))};
  }
  std::vector<shard::MicroBatch> micro_batches(const std::vector<std::int64_t>& sizes) const {
    std::vector<shard::MicroBatch> batches;
    std::int64_t first = 0;
    for (const auto size : sizes) {
      batches.push_back(micro_batch(first, size));
      first += size;
    }
    return batches;
  }
  at::Tensor ids, targets;
};

// Of which no kernel knows.
const loss::LossOptions kJensenShannon{
    .kind = loss::LossKind::jensen_shannon, .weight = 0.4, .temperature = 2, .beta = 0.3};
const loss::LossOptions kTotalVariation{.kind = loss::LossKind::total_variation, .weight = 0.6};

struct Models {
  explicit Models(bool tied, std::int64_t teacher_hidden = 24)
      : student(test::lively_weights(test::config_of({.blocks = 2, .tied = tied}), 31)),
        teacher(test::lively_weights(test::config_of({.hidden = teacher_hidden, .blocks = 3}), 32)) {}
  loss::Losses losses() const {
    return loss::make_losses({{.kind = loss::LossKind::cross_entropy, .weight = 0.25},
                              {.kind = loss::LossKind::kl_divergence, .weight = 1, .temperature = 3},
                              kJensenShannon,
                              kTotalVariation,
                              {.kind = loss::LossKind::squarehead, .weight = 0.7}},
                             {.student = 2, .teacher = 3, .survivors = {}});
  }
  model::Weights student, teacher;
};

struct Expected {
  double cross_entropy, kl_divergence, jensen_shannon, total_variation, squarehead;
  std::vector<at::Tensor> gradients;
};

at::Tensor squarehead_of(const Models& models, const test::ReferenceOutputs& student,
                         const test::ReferenceOutputs& teacher) {
  auto sum = at::zeros({}, at::kDouble);
  for (std::size_t block = 0; block < 2; ++block) {
    const auto phi = static_cast<std::size_t>(
        models.losses().on_hidden.front()->teacher_block(static_cast<std::int64_t>(block)));
    for (std::int64_t s = 0; s < kSequences; ++s) {
      const auto a = student.hidden_ND[block].narrow(0, s * kLength, kLength);
      const auto b = loss::pool_features(teacher.hidden_ND[phi], 24).narrow(0, s * kLength, kLength);
      sum = sum + (a - b).square().mean() / (b.square().mean() + 1e-6) / (2.0 * kSequences);
    }
  }
  return sum;
}

Expected by_autograd(const Models& models, const Step& step) {
  const auto leaves = test::as_leaves(models.student);
  const auto all = step.micro_batch(0, kSequences);
  const auto student = test::reference_model(leaves, all.ids_N, all.starts);
  const auto teacher = test::reference_model(models.teacher, all.ids_N, all.starts);
  const double count = step.num_targets();
  const auto ce = ops::reference::cross_entropy(student.logits_NV, all.targets_N).sum() / count;
  const auto kl =
      ops::reference::kl_divergence(student.logits_NV, teacher.logits_NV, all.targets_N, 3, false, true)
          .sum() /
      count;
  const auto counted = at::nonzero(all.targets_N.ge(0)).squeeze(1);
  const auto composed = [&](const loss::LossOptions& options) {
    const auto rows = [&](const at::Tensor& x) { return x.index_select(0, counted); };
    return test::loss_formula(options, rows(student.logits_NV), rows(teacher.logits_NV), rows(all.targets_N))
               .sum() /
           count;
  };
  const auto js = composed(kJensenShannon), tv = composed(kTotalVariation);
  const auto squarehead = squarehead_of(models, student, teacher);
  (0.25 * ce + kl + 0.4 * js + 0.6 * tv + 0.7 * squarehead).backward();
  Expected expected{ce.item<double>(), kl.item<double>(),         js.item<double>(),
                    tv.item<double>(), squarehead.item<double>(), {}};
  for (const auto& unit : leaves.units) expected.gradients.push_back(unit.grad());
  return expected;
}

struct Way {
  std::vector<std::int64_t> micro_batches;
  shard::EngineOptions options;
};

std::vector<Way> ways() {
  std::vector<Way> list;
  for (const auto& sizes : {std::vector<std::int64_t>{4}, {2, 2}, {1, 1, 1, 1}, {1, 3}})
    for (const std::int64_t wave : {1, 2, 4})
      for (const bool keep : {false, true})
        list.push_back({sizes, {.wave = wave, .head_rows = keep ? 7 : 256, .keep_activations = keep}});
  return list;
}

void expect_step(const Models& models, const Step& step, const Expected& expected, const Way& way) {
  SCOPED_TRACE(testing::Message() << way.micro_batches.size() << " micro-batches, wave " << way.options.wave
                                  << ", keep " << way.options.keep_activations);
  const auto student = shard::resident_parameters(model::converted(models.student, at::kDouble),
                                                  shard::Use::trained, at::kDouble);
  const auto teacher = shard::resident_parameters(models.teacher, shard::Use::frozen, at::kDouble);
  const auto group = comm::single_group();
  const auto losses = models.losses();
  shard::PhaseClock clock;
  shard::ModelTeacher taught_by(*teacher);
  shard::Engine engine(*student, &taught_by, losses, *group, clock, way.options);
  const auto batches = step.micro_batches(way.micro_batches);
  engine.step(batches);
  const auto result = engine.step(batches);  // a second step starts from zero gradients again
  EXPECT_NEAR(result.parts.at("cross_entropy"), expected.cross_entropy, 1e-11);
  EXPECT_NEAR(result.parts.at("kl_divergence"), expected.kl_divergence, 1e-10);
  EXPECT_NEAR(result.parts.at("jensen_shannon"), expected.jensen_shannon, 1e-11);
  EXPECT_NEAR(result.parts.at("total_variation"), expected.total_variation, 1e-11);
  EXPECT_NEAR(result.parts.at("squarehead"), expected.squarehead, 1e-11);
  EXPECT_NEAR(result.loss,
              0.25 * expected.cross_entropy + expected.kl_divergence + 0.4 * expected.jensen_shannon +
                  0.6 * expected.total_variation + 0.7 * expected.squarehead,
              1e-10);
  EXPECT_EQ(result.tokens, kSequences * kLength);
  EXPECT_EQ(result.targets, static_cast<std::int64_t>(step.num_targets()));
  for (std::size_t unit = 0; unit < expected.gradients.size(); ++unit)
    expect_close(student->gradient(static_cast<std::int64_t>(unit)), expected.gradients[unit], 1e-10,
                 ("unit " + std::to_string(unit)).c_str());
}

TEST(Engine, GradientsEqualAutogradForEveryWayToCutTheStep) {
  const Step step;
  const Models models(false);
  const auto expected = by_autograd(models, step);
  for (const auto& way : ways()) expect_step(models, step, expected, way);
}

TEST(Engine, GradientsOfATiedModelEqualAutograd) {
  const Step step;
  const Models models(true);
  const auto expected = by_autograd(models, step);
  expect_step(models, step, expected, {{1, 3}, {.wave = 1, .head_rows = 7}});
  expect_step(models, step, expected, {{2, 2}, {.wave = 2, .keep_activations = true}});
}

TEST(Engine, GradientsEqualAutogradWithATeacherOfAnotherWidth) {
  const Step step;
  const Models models(false, 40);
  expect_step(models, step, by_autograd(models, step), {{2, 2}, {.wave = 2, .head_rows = 16}});
}

TEST(Engine, CrossEntropyAloneNeedsNoTeacher) {
  const Step step;
  const Models models(true);
  const auto losses = loss::make_losses({{.kind = loss::LossKind::cross_entropy}}, {});
  const auto student = shard::resident_parameters(model::converted(models.student, at::kDouble),
                                                  shard::Use::trained, at::kDouble);
  const auto group = comm::single_group();
  shard::PhaseClock clock;
  shard::Engine engine(*student, nullptr, losses, *group, clock, {});
  const auto result = engine.step(step.micro_batches({2, 2}));
  EXPECT_NEAR(result.loss, by_autograd(models, step).cross_entropy, 1e-11);
}

// The inner product with the teacher's blocks from the last to the first, or the student's square alone:
// losses that the library does not have.
class InnerProduct final : public loss::HiddenLoss {
 public:
  InnerProduct(loss::LossTraits traits, double weight, std::vector<std::int64_t> map)
      : HiddenLoss(traits, weight), map_(std::move(map)) {}
  std::int64_t teacher_block(std::int64_t block) const override {
    return map_.at(static_cast<std::size_t>(block));
  }
  at::Tensor add(const loss::HiddenStates& states, at::Tensor grad_ND) const override {
    const auto other = needs_teacher() ? states.teacher_NF : states.student_ND;
    grad_ND.copy_(other * ((needs_teacher() ? 1 : 2) * weight() / states.step_tokens));
    return (states.student_ND * other).sum().to(at::kDouble);
  }

 private:
  std::vector<std::int64_t> map_;
};

TEST(Engine, AddsWhateverLossesOnHiddenStatesThereAre) {
  const Step step;
  const Models models(false);
  const auto all = step.micro_batch(0, kSequences);
  const auto leaves = test::as_leaves(models.student);
  const auto s = test::reference_model(leaves, all.ids_N, all.starts).hidden_ND;
  const auto t = test::reference_model(models.teacher, all.ids_N, all.starts).hidden_ND;
  const double tokens = kSequences * kLength;
  const auto product = ((s[0] * t[2]).sum() + (s[1] * t[0]).sum()) / tokens;
  const auto square = (s[0].square().sum() + s[1].square().sum()) / tokens;
  (0.3 * product + 0.2 * square).backward();

  loss::Losses losses;
  losses.on_hidden.push_back(std::make_unique<InnerProduct>(
      loss::LossTraits{.name = "product", .needs_teacher = true}, 0.3, std::vector<std::int64_t>{2, 0}));
  losses.on_hidden.push_back(
      std::make_unique<InnerProduct>(loss::LossTraits{.name = "square"}, 0.2, std::vector<std::int64_t>{}));
  for (const std::int64_t wave : {1, 2}) {
    const auto student = shard::resident_parameters(model::converted(models.student, at::kDouble),
                                                    shard::Use::trained, at::kDouble);
    const auto teacher = shard::resident_parameters(models.teacher, shard::Use::frozen, at::kDouble);
    const auto group = comm::single_group();
    shard::PhaseClock clock;
    shard::ModelTeacher taught_by(*teacher);
    shard::Engine engine(*student, &taught_by, losses, *group, clock, {.wave = wave});
    const auto result = engine.step(step.micro_batches({1, 3}));
    EXPECT_NEAR(result.parts.at("product"), product.item<double>(), 1e-10);
    EXPECT_NEAR(result.parts.at("square"), square.item<double>(), 1e-10);
    for (std::size_t unit = 0; unit + 1 < leaves.units.size(); ++unit)
      expect_close(student->gradient(static_cast<std::int64_t>(unit)), leaves.units[unit].grad(), 1e-10,
                   ("unit " + std::to_string(unit)).c_str());
  }
}

TEST(Engine, InBfloat16TrainsFloatMastersWithGradientsNearThoseInDouble) {
  const Step step;
  Models models(false);
  // The same weights as the copies hold, so that only the arithmetic differs.
  for (auto* weights : {&models.student, &models.teacher})
    for (auto& unit : weights->units) unit = unit.to(at::kBFloat16).to(at::kDouble);
  const auto expected = by_autograd(models, step);
  const auto student = shard::resident_parameters(model::converted(models.student, at::kFloat),
                                                  shard::Use::trained, at::kBFloat16);
  const auto teacher = shard::resident_parameters(models.teacher, shard::Use::frozen, at::kBFloat16);
  const auto group = comm::single_group();
  const auto losses = models.losses();
  shard::PhaseClock clock;
  shard::ModelTeacher taught_by(*teacher);
  shard::Engine engine(*student, &taught_by, losses, *group, clock, {});
  const auto result = engine.step(step.micro_batches({2, 2}));
  EXPECT_NEAR(result.parts.at("cross_entropy"), expected.cross_entropy,
              test::kOneBfloat16Rounding * expected.cross_entropy);
  EXPECT_EQ(student->master(0).scalar_type(), at::kFloat);
  EXPECT_EQ(student->compute_copy(0).scalar_type(), at::kBFloat16);
  for (std::size_t unit = 0; unit < expected.gradients.size(); ++unit) {
    const auto actual = student->own_gradient(static_cast<std::int64_t>(unit)).to(at::kDouble);
    const auto error = (actual - expected.gradients[unit]).norm() / expected.gradients[unit].norm();
    EXPECT_LT(error.item<double>(), test::kBfloat16Gradient) << "unit " << unit;
  }
}

}  // namespace
}  // namespace retort
