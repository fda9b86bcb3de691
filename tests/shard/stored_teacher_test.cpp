// A teacher need not compute: what one has said, kept by sequence, teaches the same.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <map>

#include "retort/ops/top_k_teacher.h"
#include "retort/shard/engine.h"
#include "support/reference_model.h"
#include "support/tolerance.h"

namespace retort {
namespace {

constexpr std::int64_t kLength = 11, kVocab = 61;

struct Sequence {
  std::vector<std::int32_t> ids, targets, starts;
  std::int64_t number;
};

std::vector<Sequence> made_up_sequences() {
  std::vector<Sequence> sequences;
  for (std::int32_t number = 0; number < 6; ++number) {
    Sequence sequence{.ids = {}, .targets = {}, .starts = {0, 4}, .number = 40 + number};
    for (std::int32_t i = 0; i < kLength; ++i) {
      sequence.ids.push_back((7 * number + 5 * i * i + 3) % kVocab);
      sequence.targets.push_back(i == 3 ? -1 : (11 * number + 17 * i) % kVocab);
    }
    sequences.push_back(sequence);
  }
  return sequences;
}

// In groups of these sizes, the last first: nobody may count on the order.
std::vector<shard::MicroBatch> micro_batches(const std::vector<std::size_t>& sizes) {
  const auto all = made_up_sequences();
  std::vector<shard::MicroBatch> batches;
  auto end = all.size();
  for (const auto size : sizes) {
    end -= size;
    batches.push_back(model::packed_text(
        std::vector(all.begin() + std::ptrdiff_t(end), all.begin() + std::ptrdiff_t(end + size)), at::kCPU));
  }
  return batches;
}

/// Logits of each sequence by its number.
using Said = std::map<std::int64_t, at::Tensor>;

Said said_by(shard::Teacher& teacher) {
  const auto batches = micro_batches({6});
  const auto group = comm::single_group();
  shard::PhaseClock clock;
  const shard::AskingStep step{clock, *group, [] {}};
  const auto last = teacher.num_blocks() - 1;
  const auto wave =
      teacher.begin(batches, {.logits = true, .last_block = last, .ends_before_student = true}, step);
  wave->go_to(last);
  wave->acquire_head();
  Said said;
  for (std::size_t i = 0; i < batches[0].numbers.size(); ++i)
    said[batches[0].numbers[i]] = wave->logits_RK(0, batches[0].bounds[i], kLength).clone();
  return said;
}

class StoredTeacher final : public shard::Teacher {
 public:
  explicit StoredTeacher(Said said) : said_(std::move(said)) {}

  const architecture::Config* config() const override { return nullptr; }
  std::int64_t num_blocks() const override { return 0; }
  std::unique_ptr<shard::TeacherWave> begin(std::span<const shard::MicroBatch> batches,
                                            const shard::TeacherNeeds&, const shard::AskingStep&) override {
    return std::make_unique<Wave>(said_, batches);
  }

 private:
  class Wave final : public shard::TeacherWave {
   public:
    Wave(const Said& said, std::span<const shard::MicroBatch> batches) : said_(said), batches_(batches) {}
    void go_to(std::int64_t) override {}
    at::Tensor hidden_NF(std::size_t) const override { throw std::logic_error("it has none"); }
    void prefetch_head() override {}
    void acquire_head() override {}
    at::Tensor logits_RK(std::size_t micro_batch, std::int64_t begin, std::int64_t rows) const override {
      std::vector<at::Tensor> sequences;
      for (const auto number : batches_[micro_batch].numbers) sequences.push_back(said_.at(number));
      return at::cat(sequences).narrow(0, begin, rows).contiguous();
    }
    void forget(std::size_t) override {}

   private:
    const Said& said_;
    std::span<const shard::MicroBatch> batches_;
  };

  Said said_;
};

// What a file would hold of them, put back into rows of the vocabulary: all others share what is left.
at::Tensor expanded(const ops::TopKTeacher& kept) {
  const auto others = kVocab - kept.ids_NK.size(1);
  const auto each_N1 =
      (kept.log_rest_N - std::log(static_cast<double>(std::max<std::int64_t>(1, others)))).unsqueeze(1);
  return each_N1.expand({kept.ids_NK.size(0), kVocab})
      .clone()
      .scatter_(1, kept.ids_NK.to(at::kLong), kept.log_p_NK);
}

struct Outcome {
  shard::StepResult result;
  std::vector<at::Tensor> gradients;
};

class TaughtBy : public testing::Test {
 protected:
  Outcome step_with(shard::Teacher& teacher) const {
    const auto student = shard::resident_parameters(test::lively_weights(test::config_of({.blocks = 2}), 31),
                                                    shard::Use::trained, at::kDouble);
    const auto losses = loss::make_losses({{.kind = loss::LossKind::cross_entropy, .weight = 0.25},
                                           {.kind = loss::LossKind::kl_divergence, .temperature = 3}},
                                          {.student = 2, .teacher = 3});
    const auto group = comm::single_group();
    shard::PhaseClock clock;
    shard::Engine engine(*student, &teacher, losses, *group, clock, {.wave = 2, .head_rows = 7});
    Outcome outcome{engine.step(micro_batches({1, 3, 2})), {}};
    for (std::int64_t unit = 0; unit < student->layout().num_units(); ++unit)
      outcome.gradients.push_back(student->gradient(unit).clone());
    return outcome;
  }
  static void expect_same(const Outcome& actual, const Outcome& expected) {
    EXPECT_GT(expected.result.parts.at("kl_divergence"), 0.01);
    for (const auto& [name, value] : expected.result.parts)
      EXPECT_NEAR(actual.result.parts.at(name), value, 1e-12) << name;
    for (std::size_t unit = 0; unit < expected.gradients.size(); ++unit)
      test::expect_close(actual.gradients[unit], expected.gradients[unit], 1e-12,
                         ("unit " + std::to_string(unit)).c_str());
  }

  const std::unique_ptr<shard::Parameters> weights_ =
      shard::resident_parameters(test::lively_weights(test::config_of({.hidden = 40, .blocks = 3}), 32),
                                 shard::Use::frozen, at::kDouble);
  shard::ModelTeacher model_{*weights_};
};

TEST_F(TaughtBy, WhatAModelSaidAStudentLearnsTheSameAsOfTheModel) {
  StoredTeacher store(said_by(model_));
  expect_same(step_with(store), step_with(model_));
}

TEST_F(TaughtBy, AllTokensOfATopKAStudentLearnsTheSameAsOfTheModel) {
  auto said = said_by(model_);
  for (auto& [number, logits_TV] : said) logits_TV = expanded(ops::top_k_teacher(logits_TV, kVocab));
  StoredTeacher store(std::move(said));
  expect_same(step_with(store), step_with(model_));
}

// Half of the tokens with the sum of all others is near, and not the same.
TEST_F(TaughtBy, SomeTokensOfATopKAStudentLearnsNearlyTheSame) {
  auto said = said_by(model_);
  for (auto& [number, logits_TV] : said) logits_TV = expanded(ops::top_k_teacher(logits_TV, kVocab / 2));
  StoredTeacher store(std::move(said));
  const auto near = step_with(store).result.parts.at("kl_divergence");
  const auto whole = step_with(model_).result.parts.at("kl_divergence");
  EXPECT_LT(near, whole);
  EXPECT_GT(near, whole / 2);
}

}  // namespace
}  // namespace retort
