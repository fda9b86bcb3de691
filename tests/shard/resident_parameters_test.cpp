// Parameters that lie on one device: types, copies and gradients.
#include <gtest/gtest.h>

#include "retort/base/error.h"
#include "retort/shard/parameters.h"
#include "support/reference_model.h"
#include "support/tolerance.h"

namespace retort {
namespace {

std::unique_ptr<shard::Parameters> parameters(shard::Use use, at::ScalarType compute) {
  return shard::resident_parameters(test::lively_weights(test::config_of(test::Shape{}), 5, at::kFloat), use,
                                    compute);
}

TEST(ResidentParameters, ThatAreFrozenHaveTheComputeTypeAndNoGradients) {
  const auto frozen = parameters(shard::Use::frozen, at::kBFloat16);
  EXPECT_EQ(frozen->acquire(1).scalar_type(), at::kBFloat16);
  EXPECT_EQ(frozen->whole_master(1).scalar_type(), at::kBFloat16);
  EXPECT_THROW(frozen->gradient(1), base::InternalError);
}

TEST(ResidentParameters, ThatAreTrainedKeepAMasterBesideACopyOfAnotherType) {
  const auto trained = parameters(shard::Use::trained, at::kBFloat16);
  for (std::int64_t unit = 0; unit < trained->layout().num_units(); ++unit) {
    EXPECT_EQ(trained->master(unit).scalar_type(), at::kFloat);
    test::expect_identical(trained->acquire(unit), trained->master(unit).to(at::kBFloat16));
    EXPECT_TRUE(trained->acquire(unit).is_same(trained->compute_copy(unit)));
    EXPECT_EQ(trained->range(unit).count, trained->master(unit).numel());
  }
}

TEST(ResidentParameters, OfTheMastersTypeAreTheMaster) {
  const auto trained = parameters(shard::Use::trained, at::kFloat);
  EXPECT_TRUE(trained->acquire(1).is_same(trained->master(1)));
  EXPECT_FALSE(trained->compute_copy(1).defined());
}

TEST(ResidentParameters, HaveGradientsThatBeginAtZeroAndReturnToIt) {
  const auto trained = parameters(shard::Use::trained, at::kFloat);
  for (int step = 0; step < 2; ++step) {
    for (std::int64_t unit = 0; unit < trained->layout().num_units(); ++unit) {
      EXPECT_EQ(trained->gradient(unit).abs().max().item<float>(), 0) << unit;
      trained->gradient(unit).fill_(3);
      EXPECT_EQ(trained->own_gradient(unit).min().item<float>(), 3) << unit;
    }
    trained->zero_gradients();
  }
}

}  // namespace
}  // namespace retort
