// What `retort bench` measures: on the shapes of a model, without its weights.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "retort/architecture/hf_config.h"
#include "retort/base/error.h"
#include "retort/base/units.h"
#include "retort/bench/matrix_product.h"
#include "retort/bench/rates.h"
#include "retort/model/dtype.h"
#include "retort/ops/tensor_allocator.h"
#include "retort/pipeline/context.h"
#include "retort/pipeline/float32_products.h"
#include "retort/pipeline/inspect_model.h"
#include "retort/pipeline/pipeline.h"
#include "retort/pipeline/torch_errors.h"

namespace retort::pipeline {
namespace {

constexpr std::int64_t kMostTokens = 2048, kLeastTokens = 256;
constexpr double kRoundsInTime = 6;  // of all products, for the choice of tokens

constexpr double kMemoryShare = 0.01;  // of all time, twice

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

  bench::Effort effort(double share) const {
    return {.seconds = share * request_.seconds / static_cast<double>(dtypes_.size())};
  }
  std::function<void(double)> progress(const std::string& what) const {
    return [this, what](double share) { observer_.progress(what, std::lround(100 * share), 100); };
  }

  // As many as pass the products a few times in the time that there is, in every type.
  std::int64_t tokens_in_time() const {
    double flops = 0;
    for (const auto& product : bench::products_of(conditions_.config, kLeastTokens))
      flops += static_cast<double>(std::size(bench::kPasses)) * bench::flops(product.weight, kLeastTokens);
    flops /= static_cast<double>(kLeastTokens);
    double tokens = kMostTokens;
    for (const auto& [name, rate] : square_flops_)
      tokens = std::min(tokens, effort(1).seconds * rate / (kRoundsInTime * flops));
    return std::max<std::int64_t>(kLeastTokens,
                                  static_cast<std::int64_t>(tokens) / kLeastTokens * kLeastTokens);
  }

  std::int64_t gemm_bytes(at::ScalarType dtype) const {
    std::int64_t most = 0;
    for (const auto& product : bench::products_of(conditions_.config, conditions_.tokens))
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

  // The rate of a square product is measured once more at the end.
  bench::GemmRates measured(at::ScalarType dtype) const {
    bench::GemmRates rates;
    const auto report = progress(model::dtype_name(dtype) + " products");
    const auto products = bench::products_of(conditions_.config, conditions_.tokens);
    const double share = 1 / static_cast<double>(products.size());
    for (std::size_t i = 0; i < products.size(); ++i) {
      for (const auto& rate : bench::measure_product(products[i], dtype, device_, effort(share)))
        rates.products.push_back(rate);
      report(static_cast<double>(i + 1) * share);
    }
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
