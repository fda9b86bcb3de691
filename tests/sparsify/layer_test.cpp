// One layer made sparse: what is said of it, and in which order its inputs go.
#include "retort/sparsify/layer.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "support/models_for_tests.h"

namespace retort {
namespace {

using compress::SparseMethod;
using sparsify::SparsifyOptions;

// The second block's last layer of a tiny model, with inputs that are correlated and of unequal sizes.
class SparsifyLayer : public testing::Test {
 protected:
  SparsifyLayer() {
    at::manual_seed(3);
    const auto cols = layer_.cols();
    const auto spread_C = at::exp(at::randn({cols}, at::kDouble));
    const auto inputs_NC = at::mm(at::randn({300, cols}, at::kDouble), at::randn({cols, cols}, at::kDouble));
    hessian_CC_ = at::mm(inputs_NC.t(), inputs_NC) * spread_C * spread_C.unsqueeze(1) / 300;
  }

  sparsify::LayerResult make_sparse(const SparsifyOptions& options) {
    sparsify::LayerInputs inputs{hessian_CC_, options.polish ? hessian_CC_ : at::Tensor(), {}};
    if (compress::updates_weights(options.method))
      inputs.factor = calibrate::factorise(hessian_CC_, options.dampening_fraction, layer_.name);
    auto weights = model::converted(dense_, at::kDouble);
    weights.file_dtype = io::Dtype::bf16;
    sparsify::SharedModel shared(std::move(weights), /*writes=*/true, *group_);
    const auto result = sparsify::make_layer_sparse(shared, layer_, inputs, options);
    saved_RC_ = std::move(shared).taken().tensor(layer_.name);
    return result;
  }

  const model::Weights dense_ = test::tiny_model(test::tiny_config(2));
  const architecture::Tensor& layer_ = *dense_.layout.units[2].find(architecture::Role::down);
  const std::unique_ptr<comm::Group> group_ = comm::single_group();
  at::Tensor hessian_CC_, saved_RC_;
};

TEST_F(SparsifyLayer, LossAndErrorAreThoseOfTheSavedWeights) {
  const auto weight_RC = dense_.tensor(layer_.name);
  for (const auto method :
       {SparseMethod::magnitude, SparseMethod::wanda, SparseMethod::sparse_gpt, SparseMethod::alps})
    for (const bool polish : {false, true}) {
      SCOPED_TRACE(testing::Message() << base::word(method) << (polish ? ", polished" : ""));
      SparsifyOptions options;
      options.method = method;
      options.permute = false;
      options.polish = polish;
      const auto result = make_sparse(options);
      ASSERT_EQ(result.polish.has_value(), polish);
      const double loss = calibrate::output_error(weight_RC - saved_RC_, hessian_CC_),
                   whole = calibrate::output_error(weight_RC, hessian_CC_);
      EXPECT_NEAR(result.loss / loss, 1, 1e-9);
      EXPECT_NEAR(result.relative_error / std::sqrt(loss / whole), 1, 1e-9);
    }
}

// w^2 / (H^-1)_cc is what a removal leaves when the other weights make up for it; w^2 alone is another order.
TEST_F(SparsifyLayer, InputsChangePlacesByWhatTheirRemovalLeaves) {
  SparsifyOptions options;
  options.method = SparseMethod::sparse_gpt;
  options.polish = false;
  const auto damped_CC = calibrate::factorise(hessian_CC_, options.dampening_fraction, "layer").damped_CC;
  const auto score_RC = dense_.tensor(layer_.name).square() / at::linalg_inv(damped_CC).diagonal();
  const auto kept_share = [&](const at::Tensor& in_order_RC) {
    const auto groups_RG4 = in_order_RC.reshape({layer_.rows(), -1, 4});
    return (std::get<0>(groups_RG4.topk(2)).sum() / groups_RG4.sum()).item<double>();
  };
  const auto result = make_sparse(options);
  ASSERT_FALSE(result.order.empty());
  const auto ordered_RC = score_RC.index_select(1, at::tensor(result.order, at::kLong));
  EXPECT_NEAR(*result.kept_share_before, kept_share(score_RC), 1e-6);
  EXPECT_NEAR(*result.kept_share_after, kept_share(ordered_RC), 1e-6);
  EXPECT_GT(*result.kept_share_after, *result.kept_share_before);
}

}  // namespace
}  // namespace retort
