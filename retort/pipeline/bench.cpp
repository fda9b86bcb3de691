// What `retort bench` measures: on the shapes of a model, without its weights.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "retort/architecture/hf_config.h"
#include "retort/base/error.h"
#include "retort/base/units.h"
#include "retort/bench/matrix_product.h"
#include "retort/bench/sizing.h"
#include "retort/model/dtype.h"
#include "retort/ops/tensor_allocator.h"
#include "retort/pipeline/context.h"
#include "retort/pipeline/float32_products.h"
#include "retort/pipeline/inspect_model.h"
#include "retort/pipeline/pipeline.h"
#include "retort/pipeline/torch_errors.h"

namespace retort::pipeline {
namespace {

constexpr std::int64_t kMostTokens = 2048, kLeastTokens = 256, kAttentionTokens = 1024;
constexpr double kRoundsInTime = 6;  // of the sweeps, for the choice of tokens

constexpr double kMemoryShare = 0.01;  // of all time, twice

// Shares of the time of a compute type.
constexpr double kProductShare = 0.2, kWidthShare = 0.35, kHiddenShare = 0.3, kGroupShare = 0.075,
                 kHeadShare = 0.075;

// As wide as models of some hundred million parameters are.
architecture::Config usual_shape() {
  architecture::Config config;
  config.vocab_size = 32768;
  config.hidden_size = 1024;
  config.max_position_embeddings = kMostTokens;
  config.blocks = {{architecture::Attention{16, 4, 64}, architecture::DenseMlp{2816}}};
  return config;
}

std::int64_t item_bytes(at::ScalarType dtype) {
  return static_cast<std::int64_t>(at::elementSize(dtype));
}

// A measurement while it goes on.
class Bench {
 public:
  Bench(const BenchRequest& request, record::Observer& observer)
      : request_(request), observer_(observer), device_(model::parse_device(request.model.device)) {
    if (request.model.dtype == "auto")
      dtypes_ = {at::kFloat, at::kBFloat16};
    else
      dtypes_ = {model::parse_compute_dtype(request.model.dtype)};
    settle_float32_products(device_, observer);
    const auto& name = request.model.model;
    available_bytes_ = available_bytes(request.model.available_memory, device_);
    conditions_ = {.machine = bench::this_machine(device_),
                   .model = name,
                   .config = name.empty() ? usual_shape() : inspect_shape(name, observer),
                   .tokens = request.tokens,
                   .memory = {}};
    measure_ceilings();
  }

  base::Json gemm() {
    if (conditions_.tokens == 0) conditions_.tokens = tokens_in_time();
    std::map<std::string, bench::GemmRates> rates;
    for (const auto dtype : dtypes_) {
      require_fits(gemm_bytes(dtype));
      rates[model::dtype_name(dtype)] = measured(dtype);
    }
    measure_ceilings();
    for (auto& [name, one] : rates) one.square_flops = square_flops_.at(name);
    return bench::gemm_json(conditions_, rates);
  }

  base::Json kernels() {
    if (conditions_.tokens == 0) conditions_.tokens = kMostTokens;
    std::map<std::string, bench::KernelRates> rates;
    for (const auto dtype : dtypes_) {
      const auto name = model::dtype_name(dtype);
      require_fits(bench::kernel_bytes(conditions_.config, conditions_.tokens, item_bytes(dtype), device_));
      rates[name] = {0, bench::measure_kernels(conditions_.config, conditions_.tokens, dtype, device_,
                                               effort(1), progress(name + " kernels"))};
    }
    measure_ceilings();
    for (auto& [name, one] : rates) one.square_flops = square_flops_.at(name);
    return bench::kernels_json(conditions_, rates);
  }

 private:
  // Keeps the better of what it finds each time.
  void measure_ceilings() {
    for (const auto dtype : dtypes_) {
      auto& flops = square_flops_[model::dtype_name(dtype)];
      flops = std::max(flops, bench::matrix_product_flops(dtype, device_));
    }
    const auto memory =
        bench::measure_memory(device_, available_bytes_ / 2, {.seconds = kMemoryShare * request_.seconds});
    conditions_.memory = memory.better(conditions_.memory);
  }

  bench::SweepPlan width_sweep(std::int64_t tokens) const {
    return bench::mlp_width_sweep(conditions_.config, tokens);
  }
  bench::SweepPlan hidden_sweep(std::int64_t tokens) const {
    return bench::hidden_size_sweep(conditions_.config, tokens);
  }

  bench::Effort effort(double share) const {
    return {.seconds = share * request_.seconds / static_cast<double>(dtypes_.size())};
  }
  std::function<void(double)> progress(const std::string& what) const {
    return [this, what](double share) { observer_.progress(what, std::lround(100 * share), 100); };
  }

  // As many as pass the sweeps a few times in the time that there is, in every type.
  std::int64_t tokens_in_time() const {
    const double flops = width_sweep(1).flops_per_round() + hidden_sweep(1).flops_per_round();
    double tokens = kMostTokens;
    for (const auto& [name, rate] : square_flops_)
      tokens = std::min(tokens, effort(kWidthShare + kHiddenShare).seconds * rate / (kRoundsInTime * flops));
    return std::max<std::int64_t>(kLeastTokens,
                                  static_cast<std::int64_t>(tokens) / kLeastTokens * kLeastTokens);
  }

  std::int64_t gemm_bytes(at::ScalarType dtype) const {
    const auto tokens = conditions_.tokens;
    std::int64_t most =
        std::max(width_sweep(tokens).bytes(item_bytes(dtype)), hidden_sweep(tokens).bytes(item_bytes(dtype)));
    for (const auto& product : bench::products_of(conditions_.config, tokens))
      most = std::max(most, bench::Operands::bytes({&product.weight, 1}, product.tokens, item_bytes(dtype)));
    return most;
  }
  void require_fits(std::int64_t bytes) const {
    base::require<base::MemoryError>(
        bytes <= available_bytes_, "bench: the operands need ",
        base::human_bytes(static_cast<std::uint64_t>(bytes)), ", expected at most ",
        base::human_bytes(static_cast<std::uint64_t>(std::max<std::int64_t>(0, available_bytes_))),
        ", what the machine has left; take fewer --tokens, or a smaller model.");
  }

  bench::GemmRates measured(at::ScalarType dtype) const {
    const auto name = model::dtype_name(dtype);
    const auto tokens = conditions_.tokens, attended = std::min(tokens, kAttentionTokens);
    const auto& config = conditions_.config;
    bench::GemmRates rates{.square_flops = 0,  // measured once more at the end
                           .products = {},
                           .mlp_width = {},
                           .hidden_size = {},
                           .kv_groups = {},
                           .head_dim = {}};
    const auto products = bench::products_of(config, tokens);
    for (std::size_t i = 0; i < products.size(); ++i) {
      for (const auto& rate : bench::measure_product(
               products[i], dtype, device_, effort(kProductShare / static_cast<double>(products.size()))))
        rates.products.push_back(rate);
      progress(name + " products")(static_cast<double>(i + 1) / static_cast<double>(products.size()));
    }
    rates.mlp_width = bench::measure(width_sweep(tokens), dtype, device_, effort(kWidthShare),
                                     progress(name + " MLP widths"));
    rates.hidden_size = bench::measure(hidden_sweep(tokens), dtype, device_, effort(kHiddenShare),
                                       progress(name + " hidden sizes"));
    rates.kv_groups = bench::measure_kv_groups(config, tokens, dtype, device_, effort(kGroupShare),
                                               progress(name + " KV groups"));
    rates.head_dim = bench::measure_head_dims(config, attended, dtype, device_, effort(kHeadShare),
                                              progress(name + " head dims"));
    return rates;
  }

  const BenchRequest& request_;
  record::Observer& observer_;
  at::Device device_;
  std::int64_t available_bytes_ = 0;
  std::vector<at::ScalarType> dtypes_;
  std::map<std::string, double> square_flops_;
  bench::Conditions conditions_;
};

}  // namespace

base::Json bench_gemm(const BenchRequest& request, record::Observer& observer) {
  base::Json rates;
  translate_torch_errors([&] {
    ops::install_tensor_allocator();
    rates = Bench(request, observer).gemm();
  });
  return rates;
}

base::Json bench_kernels(const BenchRequest& request, record::Observer& observer) {
  base::Json rates;
  translate_torch_errors([&] {
    ops::install_tensor_allocator();
    rates = Bench(request, observer).kernels();
  });
  return rates;
}

}  // namespace retort::pipeline
