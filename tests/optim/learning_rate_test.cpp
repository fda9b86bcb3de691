#include "retort/optim/learning_rate.h"

#include <gtest/gtest.h>

namespace retort {
namespace {

TEST(LearningRate, GoesWithTheWidthOfTheModel) {
  const auto trained = [](std::int64_t hidden) {
    return optim::with_learning_rate({}, hidden, optim::StartedFrom::trained_weights).lr;
  };
  EXPECT_DOUBLE_EQ(trained(600), 2e-4);
  EXPECT_DOUBLE_EQ(trained(6000), 2e-5);
  EXPECT_DOUBLE_EQ(optim::with_learning_rate({}, 600, optim::StartedFrom::random_weights).lr, 2e-3);
}

TEST(LearningRate, KeepsWhatTheRecipeGives) {
  EXPECT_EQ(optim::with_learning_rate({.lr = 0.5}, 600, optim::StartedFrom::random_weights).lr, 0.5);
}

}  // namespace
}  // namespace retort
