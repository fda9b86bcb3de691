// What is written of a measurement.
#include "retort/bench/rates.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace retort::bench {
namespace {

using base::Json;

Conditions conditions() {
  Conditions made;
  made.machine = {.processor = "Made Up 9000",
                  .features = {"avx2", "fma"},
                  .device = "cpu",
                  .threads = 8,
                  .float32_products = "vectors",
                  .retort = "1.2.3",
                  .torch = "2.13.0",
                  .mkl = "2024.2",
                  .onednn = "3.7.1"};
  made.model = "models/mine";
  made.config.hidden_size = 192;
  made.config.vocab_size = 1000;
  made.config.blocks = {{architecture::Attention{6, 2, 32}, architecture::DenseMlp{512}}};
  made.tokens = 1024;
  made.memory = {.array_bytes = 1 << 26, .read = 2e10, .update = 1.8e10, .triad = 1.6e10};
  return made;
}

std::map<std::string, GemmRates> rates() {
  GemmRates made{.square_flops = 2e11,
                 .products = {{{"down", {192, 512}, 12, 1024}, Pass::input_gradient, 2e-3}}};
  return {{"fp32", made}};
}

TEST(Rates, StandBesideTheirCeilings) {
  const Json json = gemm_json(conditions(), rates());
  const Json& fp32 = json.at("dtypes").at("fp32");
  EXPECT_EQ(json.at("format"), 2);
  EXPECT_EQ(json.at("machine"), to_json(conditions().machine));
  EXPECT_EQ(json.at("model").at("mlp_width"), 512);
  EXPECT_EQ(json.at("memory").at("read_bytes_per_second"), 2e10);
  const Json& down = fp32.at("products").at(0);
  EXPECT_EQ(down.at("pass"), "input gradient");
  EXPECT_DOUBLE_EQ(down.at("flops_per_second"), 2.0 * 1024 * 192 * 512 / 2e-3);
  EXPECT_DOUBLE_EQ(down.at("share_of_ceiling"), 2.0 * 1024 * 192 * 512 / 2e-3 / 2e11);
}

TEST(Rates, HaveTheFastestProductAsCeiling) {
  auto made = rates().at("fp32");
  EXPECT_EQ(made.ceiling_flops(), 2e11);
  made.products.front().seconds = 1e-4;
  EXPECT_DOUBLE_EQ(made.ceiling_flops(), 2.0 * 1024 * 192 * 512 / 1e-4);
}

TEST(Rates, OfKernelsAreComparedWithWhatLimitsThem) {
  const KernelRates made{.square_flops = 2e11,
                         .kernels = {{"swiglu", "2 x 3", {.bytes = 1e9, .flops = 0, .written = 0}, 0.1},
                                     {"attention", "4 x 5", {.bytes = 0, .flops = 1e9, .written = 0}, 0.01}}};
  const Json kernels = kernels_json(conditions(), {{"bf16", made}}).at("dtypes").at("bf16").at("kernels");
  EXPECT_EQ(kernels.at(0).at("ceiling"), "memory");
  EXPECT_DOUBLE_EQ(kernels.at(0).at("bytes_per_second"), 1e10);
  EXPECT_DOUBLE_EQ(kernels.at(0).at("share_of_ceiling"), 0.5);
  EXPECT_EQ(kernels.at(1).at("ceiling"), "product");
  EXPECT_DOUBLE_EQ(kernels.at(1).at("share_of_ceiling"), 0.5);
}

TEST(Machine, IsThatOfTheProcess) {
  const auto here = this_machine(at::kCPU);
  EXPECT_EQ(here.device, "cpu");
  EXPECT_GT(here.threads, 0);
  EXPECT_NE(here.torch, "");
}

}  // namespace
}  // namespace retort::bench
