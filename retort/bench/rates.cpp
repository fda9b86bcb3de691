#include "retort/bench/rates.h"

#include <algorithm>

#include "retort/base/printable.h"

namespace retort::bench {
namespace {

using base::Json;

constexpr const char* kDtypes = "dtypes";
constexpr const char* kFlops = "flops_per_second";
constexpr const char* kSquareFlops = "square_flops_per_second";

Json describe(const Conditions& conditions) {
  const auto& config = conditions.config;
  std::int64_t width = 0;
  architecture::Attention heads;
  for (const auto& block : config.blocks) {
    width = std::max(width, architecture::mlp_width(block));
    if (block.attention && block.attention->num_heads > heads.num_heads) heads = *block.attention;
  }
  return {{"name", base::as_utf8(conditions.model)},
          {"hidden_size", config.hidden_size},
          {"mlp_width", width},
          {"heads", heads.num_heads},
          {"kv_heads", heads.num_kv_heads},
          {"head_dim", heads.head_dim},
          {"vocab_size", config.vocab_size},
          {"blocks", config.blocks.size()}};
}

Json head_of(const char* kind, const Conditions& conditions) {
  const auto& memory = conditions.memory;
  return {{"format", kRatesFormat},
          {"kind", kind},
          {"machine", to_json(conditions.machine)},
          {"model", describe(conditions)},
          {"tokens", conditions.tokens},
          {"memory",
           {{"array_bytes", memory.array_bytes},
            {"read_bytes_per_second", memory.read},
            {"update_bytes_per_second", memory.update},
            {"triad_bytes_per_second", memory.triad}}}};
}

Json to_json(const ProductRate& rate, double ceiling) {
  const auto& product = rate.product;
  return {{"product", product.name},
          {"pass", base::word(rate.pass)},
          {"blocks", product.blocks},
          {"tokens", product.tokens},
          {"rows", product.weight.rows},
          {"columns", product.weight.columns},
          {"seconds", rate.seconds},
          {kFlops, rate.flops_per_second()},
          {"share_of_ceiling", rate.flops_per_second() / ceiling}};
}

Json to_json(const KernelRate& rate, const MemoryRate& memory, double square_flops) {
  const bool computes = rate.work.flops > 0;
  const double amount = computes ? rate.work.flops : rate.work.bytes;
  const double per_second = amount / rate.seconds;
  const double least_seconds =
      computes ? amount / square_flops
               : memory.least_seconds(rate.work.bytes - rate.work.written, rate.work.written);
  return {{"kernel", rate.name},
          {"shape", rate.shape},
          {"seconds", rate.seconds},
          {computes ? "flops" : "bytes", amount},
          {computes ? kFlops : "bytes_per_second", per_second},
          {"ceiling", computes ? "product" : "memory"},
          {"share_of_ceiling", least_seconds / rate.seconds}};
}

}  // namespace

double GemmRates::ceiling_flops() const {
  double ceiling = square_flops;
  for (const auto& rate : products) ceiling = std::max(ceiling, rate.flops_per_second());
  return ceiling;
}

Json gemm_json(const Conditions& conditions, const std::map<std::string, GemmRates>& by_dtype) {
  Json json = head_of("gemm", conditions);
  for (const auto& [dtype, rates] : by_dtype) {
    const double ceiling = rates.ceiling_flops();
    Json products = Json::array();
    for (const auto& product : rates.products) products.push_back(to_json(product, ceiling));
    json[kDtypes][dtype] = {
        {kSquareFlops, rates.square_flops}, {"ceiling_flops_per_second", ceiling}, {"products", products}};
  }
  return json;
}

Json kernels_json(const Conditions& conditions, const std::map<std::string, KernelRates>& by_dtype) {
  Json json = head_of("kernels", conditions);
  for (const auto& [dtype, rates] : by_dtype) {
    Json kernels = Json::array();
    for (const auto& kernel : rates.kernels)
      kernels.push_back(to_json(kernel, conditions.memory, rates.square_flops));
    json[kDtypes][dtype] = {{kSquareFlops, rates.square_flops}, {"kernels", kernels}};
  }
  return json;
}

}  // namespace retort::bench
