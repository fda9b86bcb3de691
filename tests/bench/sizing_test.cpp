// What is written of a measurement, and what is read of it again.
#include "retort/bench/sizing.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "retort/base/error.h"
#include "support/message_of.h"
#include "support/temporary_directory.h"

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

Sweep sweep_of(const std::vector<double>& rates) {
  Sweep sweep{.center = 512, .multiples = {}};
  for (std::int64_t multiple = 1; const double rate : rates) {
    sweep.multiples.push_back({multiple, rate, {5 * multiple, 7 * multiple}});
    multiple *= 2;
  }
  return sweep;
}

std::map<std::string, GemmRates> rates() {
  GemmRates made{.square_flops = 2e11,
                 .products = {{{"down", {192, 512}, 12, 1024}, Pass::input_gradient, 2e-3}},
                 .mlp_width = sweep_of({1e11 / 3, 1.3e11, 2e11, 2e11}),
                 .hidden_size = sweep_of({1e11, 1e11}),
                 .kv_groups = {{1, 1e11}, {2, 1.5e11}},
                 .head_dim = {{64, 1e11}}};
  return {{"fp32", made}};
}

class SizingFile : public testing::Test {
 protected:
  Sizing read(const Json& json) const {
    base::write_file_atomically(path_, json.dump());
    return read_sizing(path_);
  }
  template <typename E = base::DataError>
  std::string refusal_of(const Json& json) const {
    return test::message_of<E>([&] { (void)read(json); });
  }
  test::TemporaryDirectory directory_;
  base::Path path_ = directory_ / "sizing.json";
};

TEST_F(SizingFile, ReadsWhatWasWritten) {
  const auto written = rates().at("fp32");
  const auto read_back = read(gemm_json(conditions(), rates()));
  EXPECT_EQ(read_back.machine.difference(conditions().machine), "");
  EXPECT_EQ(to_json(read_back.machine), to_json(conditions().machine));
  EXPECT_EQ(read_back.hidden_size, 192);
  ASSERT_EQ(read_back.by_dtype.size(), 1U);
  const auto& sweeps = read_back.by_dtype.at("fp32");
  const auto expect_equal = [](const Sweep& left, const Sweep& right) {
    EXPECT_EQ(left.center, right.center);
    ASSERT_EQ(left.multiples.size(), right.multiples.size());
    for (std::size_t i = 0; i < left.multiples.size(); ++i) {
      EXPECT_EQ(left.multiples[i].multiple, right.multiples[i].multiple);
      EXPECT_EQ(left.multiples[i].flops_per_second, right.multiples[i].flops_per_second);
      EXPECT_EQ(left.multiples[i].widths, right.multiples[i].widths);
    }
    EXPECT_EQ(left.advised_multiple(), right.advised_multiple());
  };
  expect_equal(sweeps.mlp_width, written.mlp_width);
  expect_equal(sweeps.hidden_size, written.hidden_size);
  EXPECT_EQ(sweeps.mlp_width.advised_multiple(), 4);
  EXPECT_EQ(sweeps.square_flops, 2e11);
}

TEST_F(SizingFile, HoldsRatesBesideTheirCeilings) {
  const Json json = gemm_json(conditions(), rates());
  const Json& fp32 = json.at("dtypes").at("fp32");
  EXPECT_EQ(json.at("format"), 1);
  EXPECT_EQ(json.at("model").at("mlp_width"), 512);
  EXPECT_EQ(json.at("memory").at("read_bytes_per_second"), 2e10);
  const Json& down = fp32.at("products").at(0);
  EXPECT_EQ(down.at("pass"), "input gradient");
  EXPECT_DOUBLE_EQ(down.at("flops_per_second"), 2.0 * 1024 * 192 * 512 / 2e-3);
  EXPECT_DOUBLE_EQ(down.at("share_of_ceiling"), 2.0 * 1024 * 192 * 512 / 2e-3 / 2e11);
  EXPECT_EQ(fp32.at("mlp_width").at("advised_multiple"), 4);
  EXPECT_DOUBLE_EQ(fp32.at("mlp_width").at("multiples").at(1).at("share_of_best"), 1.65 / 2);
}

TEST_F(SizingFile, CeilingIsTheFastestProduct) {
  auto made = rates().at("fp32");
  EXPECT_EQ(made.ceiling_flops(), 2e11);
  made.products.front().seconds = 1e-4;
  EXPECT_DOUBLE_EQ(made.ceiling_flops(), 2.0 * 1024 * 192 * 512 / 1e-4);
}

TEST_F(SizingFile, OfKernelsComparesEachWithWhatLimitsIt) {
  const KernelRates made{.square_flops = 2e11,
                         .kernels = {{"swiglu", "2 x 3", {.bytes = 1e9, .flops = 0, .written = 0}, 0.1},
                                     {"attention", "4 x 5", {.bytes = 0, .flops = 1e9, .written = 0}, 0.01}}};
  const Json kernels = kernels_json(conditions(), {{"bf16", made}}).at("dtypes").at("bf16").at("kernels");
  EXPECT_EQ(kernels.at(0).at("ceiling"), "memory");
  EXPECT_DOUBLE_EQ(kernels.at(0).at("bytes_per_second"), 1e10);
  EXPECT_DOUBLE_EQ(kernels.at(0).at("share_of_ceiling"), 0.5);
  EXPECT_EQ(kernels.at(1).at("ceiling"), "product");
  EXPECT_DOUBLE_EQ(kernels.at(1).at("share_of_ceiling"), 0.5);
  EXPECT_SAYS(refusal_of(kernels_json(conditions(), {{"bf16", made}})), "what retort bench gemm writes");
}

TEST_F(SizingFile, ThatIsDamagedIsRefusedByName) {
  const auto refused = [&](const auto& change, const std::string& expected) {
    Json json = gemm_json(conditions(), rates());
    change(json);
    const auto message = refusal_of(json);
    EXPECT_SAYS(message, path_.string() + ": ");
    EXPECT_SAYS(message, expected);
    EXPECT_SAYS(message, "retort bench gemm MODEL --out");
  };
  refused([](Json& json) { json = 3; }, "expected what retort bench gemm writes");
  refused([](Json& json) { json["format"] = 2; }, "expected format 1, found 2");
  refused([](Json& json) { json.erase("machine"); }, "machine");
  refused([](Json& json) { json["machine"]["threads"] = "two"; }, "not what retort bench gemm writes");
  refused([](Json& json) { json["dtypes"]["fp32"].erase("mlp_width"); }, "mlp_width");
  const auto width = [](Json& json) -> Json& { return json["dtypes"]["fp32"]["mlp_width"]; };
  refused([&](Json& json) { width(json)["multiples"][1]["multiple"] = 3; },
          "expected the multiple 2, found 3");
  refused([&](Json& json) { width(json)["multiples"][1]["flops_per_second"] = -1; },
          "expected a rate above 0");
  refused([&](Json& json) { width(json)["advised_multiple"] = 64; },
          "expected the advice that its rates give, 4, found 64");
  base::write_file_atomically(path_, "{\"format\": 1,");
  EXPECT_SAYS(test::message_of<base::DataError>([&] { (void)read_sizing(path_); }), "byte ");
  EXPECT_SAYS(test::message_of<base::UsageError>([&] { (void)read_sizing(directory_ / "none.json"); }),
              "none.json");
}

TEST(Machine, DiffersInWhatChangesRates) {
  const auto machine = conditions().machine;
  const auto changed = [&](auto member, auto value) {
    auto other = machine;
    other.*member = value;
    return other.difference(machine);
  };
  EXPECT_EQ(changed(&Machine::threads, 2), "2 threads instead of 8");
  EXPECT_EQ(changed(&Machine::processor, "Other"), "Other instead of Made Up 9000");
  EXPECT_EQ(changed(&Machine::device, "cuda"), "device cuda instead of cpu");
  EXPECT_SAYS(changed(&Machine::features, std::vector<std::string>{"avx2"}), "vector instructions");
  EXPECT_EQ(changed(&Machine::torch, "2.12.0"), "");
  const auto here = this_machine(at::kCPU);
  EXPECT_EQ(here.device, "cpu");
  EXPECT_GT(here.threads, 0);
  EXPECT_NE(here.torch, "");
}

}  // namespace
}  // namespace retort::bench
