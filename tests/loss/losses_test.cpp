// The sum of losses that options ask for.
#include "retort/loss/losses.h"

#include <gtest/gtest.h>

#include "retort/base/error.h"
#include "support/message_of.h"

namespace retort {
namespace {

using loss::LossKind;

TEST(Losses, RefuseNoneAndTheSameTwice) {
  EXPECT_SAYS(test::message_of<base::UsageError>([] { loss::make_losses({}, {}); }), "at least one loss");
  EXPECT_SAYS(test::message_of<base::UsageError>([] {
                loss::make_losses({{}, {}}, {});
              }),
              "cross_entropy stands twice");
}

TEST(Losses, OfThePaperAreThree) {
  const auto losses =
      loss::make_losses(loss::paper_distillation_losses(), {.student = 2, .teacher = 4, .survivors = {}});
  std::map<std::string, double> weights;
  for (const auto* loss : losses.all()) weights[loss->name()] = loss->weight();
  EXPECT_EQ(weights, (std::map<std::string, double>{
                         {"cross_entropy", 0.25}, {"kl_divergence", 1}, {"squarehead", 1}}));
  EXPECT_TRUE(losses.needs_teacher_logits());
}

TEST(Losses, DefaultsAreCrossEntropyAndKlAtTemperatureOne) {
  const auto options = loss::default_distillation_losses();
  ASSERT_EQ(options.size(), 2U);
  EXPECT_EQ(options[0].kind, LossKind::cross_entropy);
  EXPECT_EQ(options[0].weight, 0.5);
  EXPECT_EQ(options[1].kind, LossKind::kl_divergence);
  EXPECT_EQ(options[1].temperature, 1.0);
}

// What is said of a kind before there is a loss is what the loss does.
TEST(Losses, AreWhatTheirTraitsSay) {
  for (std::size_t kind = 0; kind < loss::kLossTraits.size(); ++kind) {
    const auto& traits = loss::traits_of(static_cast<LossKind>(kind));
    const auto losses =
        loss::make_losses({{.kind = static_cast<LossKind>(kind)}}, {.student = 1, .teacher = 1});
    ASSERT_EQ(losses.all().size(), 1U);
    EXPECT_EQ(losses.all().front()->name(), traits.name);
    EXPECT_EQ(losses.needs_teacher(), traits.needs_teacher);
    EXPECT_EQ(losses.on_hidden.size(), traits.on_hidden_states ? 1U : 0U);
    EXPECT_EQ(losses.needs_teacher_logits(), traits.needs_teacher && !traits.on_hidden_states);
  }
}

}  // namespace
}  // namespace retort
