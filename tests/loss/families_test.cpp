// Gradients of every tensor of models of every family, and their logits in bfloat16, against transformers.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "retort/architecture/families.h"
#include "retort/loss/head_loop.h"
#include "retort/model/forward.h"
#include "retort/ops/path.h"
#include "support/oracle_case.h"
#include "support/tolerance.h"

namespace retort {
namespace {

at::Tensor hidden_of(const model::Weights& weights, const at::Tensor& ids_N, const model::TokenLayout& layout,
                     std::vector<at::Tensor>* inputs_ND, std::vector<model::BlockActivations>* kept) {
  auto hidden_ND = model::embedded(weights, ids_N);
  for (std::int64_t block = 0; block < std::ssize(weights.config.blocks); ++block) {
    if (inputs_ND) inputs_ND->push_back(hidden_ND);
    hidden_ND = model::block_forward(model::weights_of_block(weights, block), weights.config.rms_norm_eps,
                                     hidden_ND, layout, kept ? &kept->emplace_back() : nullptr);
  }
  return hidden_ND;
}

// The next token of each, none behind the last of a document.
at::Tensor next_tokens(const at::Tensor& ids_N, std::span<const std::int64_t> starts) {
  auto targets_N = ids_N.roll(-1);
  for (const auto end : starts.subspan(1)) targets_N[end - 1] = -1;
  return targets_N;
}

// Of the mean cross-entropy of the next tokens of packed documents.
model::Weights gradients_of(const model::Weights& weights, const test::OracleCase& c, bool keep_activations) {
  const auto& config = weights.config;
  const auto layout = model::make_token_layout(config, c.starts, at::kCPU);
  const auto ids_N = model::index_tensor(c.ids, at::kCPU);
  auto gradients = model::converted(weights, at::kFloat);
  for (auto& unit : gradients.units) unit.zero_();
  std::vector<at::Tensor> inputs_ND;
  std::vector<model::BlockActivations> kept;
  const auto hidden_ND = hidden_of(weights, ids_N, layout, &inputs_ND, &kept);
  const auto targets_N = next_tokens(ids_N, c.starts);
  const auto head = static_cast<std::size_t>(weights.layout.head_unit());
  const auto sums_L = at::zeros({1}, at::kDouble);
  auto grad_ND = loss::head_loop(loss::make_losses({{.kind = loss::LossKind::cross_entropy}}, {}),
                                 {model::head_weights(weights.layout, weights.units[head]),
                                  config.rms_norm_eps, hidden_ND, model::logit_rule(config)},
                                 {}, targets_N, targets_N.ge(0).sum().item<double>(), 64,
                                 model::head_weights(gradients.layout, gradients.units[head]), sums_L);
  for (auto block = std::ssize(config.blocks) - 1; block >= 0; --block) {
    const auto i = static_cast<std::size_t>(block);
    const auto views = model::weights_of_block(weights, block);
    grad_ND = model::block_backward(
        views, inputs_ND[i],
        keep_activations ? std::move(kept[i])
                         : model::block_activations(views, config.rms_norm_eps, inputs_ND[i], layout),
        grad_ND, layout, model::weights_of_block(gradients, block));
  }
  model::embed_backward(grad_ND, ids_N, config.embedding_factor,
                        model::embedding_matrix(gradients.layout, gradients.units.front()));
  return gradients;
}

// A model of each family.
class Families : public testing::TestWithParam<int> {};

double root_mean_square(const at::Tensor& x) {
  return x.to(at::kDouble).square().mean().sqrt().item<double>();
}

TEST_P(Families, GradientsOfEveryTensorAreThoseOfTransformers) {
  const auto cases = test::family_cases(GetParam());
  EXPECT_EQ(cases.size(), architecture::families().size());
  bool keep = GetParam() % 2 == 1;  // activations are kept in every second one, and in each once
  const bool in_kernels =
      ops::path_of(at::kCPU) == ops::Path::cuda;  // one thread after the other: half of them
  for (const auto& c : cases) {
    if (in_kernels && (&c - cases.data()) % 2 == 1) continue;
    SCOPED_TRACE(c.name);
    const auto file = c.directory.parent_path() / "gradients.safetensors";
    const auto weights = model::load_weights(c.directory, at::kFloat, at::kCPU);
    const auto gradients = gradients_of(weights, c, keep = !keep);
    double worst = 0;
    for (std::size_t unit = 0; unit < gradients.layout.units.size(); ++unit)
      for (const auto& tensor : gradients.layout.units[unit].tensors) {
        const auto expected = test::tensor_of_file(file, tensor.stored.name)
                                  .narrow(0, tensor.stored.first_row, tensor.shape.front());
        const double largest = expected.abs().max().item<double>();
        if (largest > test::kNoGradient) {
          test::expect_close(gradients.tensor(unit, tensor), expected, test::kGradients, tensor.name.c_str());
          worst = std::max(worst,
                           (gradients.tensor(unit, tensor) - expected).abs().max().item<double>() / largest);
        } else {
          EXPECT_LE(gradients.tensor(unit, tensor).abs().max().item<double>(), test::kNoGradient)
              << tensor.name;
        }
      }
    std::printf("  %-20s gradients, largest relative difference %.2e\n", c.name.c_str(), worst);
  }
}

// Of each tensor that has a gradient: the error that either makes, of the tensor's own size.
TEST_P(Families, GradientsInBfloat16AreAsNearToThoseInFloatAsTransformersOwn) {
  const auto cases = test::family_cases(GetParam());
  EXPECT_EQ(cases.size(), architecture::families().size());
  bool keep = GetParam() % 2 == 0;
  for (const auto& c : cases) {
    SCOPED_TRACE(c.name);
    const auto folder = c.directory.parent_path();
    const auto weights = model::load_weights(c.directory, at::kBFloat16, at::kCPU);
    const auto gradients = gradients_of(weights, c, keep = !keep);
    double ours = 0, theirs = 0;
    for (std::size_t unit = 0; unit < gradients.layout.units.size(); ++unit)
      for (const auto& tensor : gradients.layout.units[unit].tensors) {
        const auto in_file = [&](const char* file) {
          return test::tensor_of_file(folder / file, tensor.stored.name)
              .narrow(0, tensor.stored.first_row, tensor.shape.front());
        };
        const auto exact = in_file("gradients.safetensors");
        if (exact.abs().max().item<double>() <= test::kNoGradient) continue;
        const double size = root_mean_square(exact);
        ours += root_mean_square(gradients.tensor(unit, tensor) - exact) / size;
        theirs += root_mean_square(in_file("bfloat16_gradients.safetensors") - exact) / size;
      }
    EXPECT_LE(ours, test::kTimesTheirBfloat16GradientError * theirs);
    std::printf("  %-20s bfloat16 gradients, error beside theirs %.2f\n", c.name.c_str(), ours / theirs);
  }
}

TEST_P(Families, LogitsInBfloat16AreAsNearToThoseInFloatAsTransformersOwn) {
  const auto cases = test::family_cases(GetParam());
  EXPECT_EQ(cases.size(), architecture::families().size());
  for (const auto& c : cases) {
    SCOPED_TRACE(c.name);
    const auto weights = model::load_weights(c.directory, at::kBFloat16, at::kCPU);
    const auto layout = model::make_token_layout(weights.config, c.starts, at::kCPU);
    const auto hidden_ND = hidden_of(weights, model::index_tensor(c.ids, at::kCPU), layout, nullptr, nullptr);
    const auto head = static_cast<std::size_t>(weights.layout.head_unit());
    const auto logits_NV =
        model::logits(model::head_weights(weights.layout, weights.units[head]), weights.config.rms_norm_eps,
                      model::logit_rule(weights.config), hidden_ND);
    const auto theirs_NV = test::tensor_of_file(c.directory.parent_path() / "bfloat16.safetensors", "logits");
    const auto error = [&](const at::Tensor& x) {
      return root_mean_square(x.to(at::kDouble) - c.logits_NV.to(at::kDouble));
    };
    EXPECT_LE(error(logits_NV), test::kTimesTheirBfloat16Error * error(theirs_NV)) << error(theirs_NV);
    std::printf("  %-20s bfloat16, error beside theirs %.2f\n", c.name.c_str(),
                error(logits_NV) / error(theirs_NV));
  }
}

INSTANTIATE_TEST_SUITE_P(Draw, Families, testing::Range(0, test::kDrawsOfFamily));

}  // namespace
}  // namespace retort
