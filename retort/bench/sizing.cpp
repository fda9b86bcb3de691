#include "retort/bench/sizing.h"

#include <algorithm>
#include <cmath>

#include "retort/base/error.h"
#include "retort/base/json_file.h"
#include "retort/base/printable.h"

namespace retort::bench {
namespace {

using base::Json;

// Of the sweeps, which are written and read.
constexpr const char* kFormat = "format";
constexpr const char* kKind = "kind";
constexpr const char* kMachine = "machine";
constexpr const char* kModel = "model";
constexpr const char* kDtypes = "dtypes";
constexpr const char* kHiddenSize = "hidden_size";
constexpr const char* kMlpWidth = "mlp_width";
constexpr const char* kCenter = "center";
constexpr const char* kMultiples = "multiples";
constexpr const char* kMultiple = "multiple";
constexpr const char* kFlops = "flops_per_second";
constexpr const char* kWidths = "widths";
constexpr const char* kAdvised = "advised_multiple";
constexpr const char* kGemm = "gemm";
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
          {kHiddenSize, config.hidden_size},
          {kMlpWidth, width},
          {"heads", heads.num_heads},
          {"kv_heads", heads.num_kv_heads},
          {"head_dim", heads.head_dim},
          {"vocab_size", config.vocab_size},
          {"blocks", config.blocks.size()}};
}

Json head_of(const char* kind, const Conditions& conditions) {
  const auto& memory = conditions.memory;
  return {{kFormat, kSizingFormat},
          {kKind, kind},
          {kMachine, to_json(conditions.machine)},
          {kModel, describe(conditions)},
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

Json to_json(const Sweep& sweep) {
  Json multiples = Json::array();
  for (const auto& one : sweep.multiples)
    multiples.push_back({{kMultiple, one.multiple},
                         {kFlops, one.flops_per_second},
                         {kWidths, one.widths},
                         {"share_of_best", sweep.share_of(one.multiple)}});
  return {{kCenter, sweep.center}, {kMultiples, multiples}, {kAdvised, sweep.advised_multiple()}};
}

Json to_json(const std::vector<ValueRate>& rates) {
  Json list = Json::array();
  for (const auto& rate : rates) list.push_back({{"value", rate.value}, {kFlops, rate.flops_per_second}});
  return list;
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

// What is read is refused as DataError by the caller, who knows the file.
struct Fault {
  std::string what;
};

void expect(bool ok, const std::string& what) {
  if (!ok) throw Fault{what};
}

double rate_of(double flops_per_second, const std::string& where) {
  expect(std::isfinite(flops_per_second) && flops_per_second > 0,
         base::join(where, ": expected a rate above 0, found ", flops_per_second));
  return flops_per_second;
}

Sweep sweep_of(const Json& json, const std::string& where) {
  Sweep sweep{.center = json.at(kCenter), .multiples = {}};
  std::int64_t next = 1;
  for (const auto& one : json.at(kMultiples)) {
    MultipleRate rate{.multiple = one.at(kMultiple),
                      .flops_per_second = rate_of(one.at(kFlops), where),
                      .widths = one.at(kWidths)};
    expect(rate.multiple == next && next <= (1 << 20),
           base::join(where, ": expected the multiple ", next, ", found ", rate.multiple));
    sweep.multiples.push_back(std::move(rate));
    next *= 2;
  }
  expect(json.at(kAdvised) == sweep.advised_multiple(),
         base::join(where, ": expected the advice that its rates give, ", sweep.advised_multiple(),
                    ", found ", json.at(kAdvised).dump()));
  return sweep;
}

Sizing sizing_of(const Json& json) {
  expect(json.is_object() && json.contains(kFormat) && json.contains(kKind) && json.at(kKind) == kGemm,
         "expected what retort bench gemm writes");
  expect(json.at(kFormat) == kSizingFormat,
         base::join("expected format ", kSizingFormat, ", found ", json.at(kFormat).dump()));
  Sizing sizing{.machine = machine_of_json(json.at(kMachine)),
                .hidden_size = json.at(kModel).at(kHiddenSize),
                .by_dtype = {}};
  for (const auto& [dtype, rates] : json.at(kDtypes).items())
    sizing.by_dtype[dtype] = {rate_of(rates.at(kSquareFlops), dtype),
                              sweep_of(rates.at(kMlpWidth), dtype + ": " + kMlpWidth),
                              sweep_of(rates.at(kHiddenSize), dtype + ": " + kHiddenSize)};
  return sizing;
}

}  // namespace

double GemmRates::ceiling_flops() const {
  double ceiling = square_flops;
  for (const auto& rate : products) ceiling = std::max(ceiling, rate.flops_per_second());
  return ceiling;
}

Json gemm_json(const Conditions& conditions, const std::map<std::string, GemmRates>& by_dtype) {
  Json json = head_of(kGemm, conditions);
  for (const auto& [dtype, rates] : by_dtype) {
    const double ceiling = rates.ceiling_flops();
    Json products = Json::array();
    for (const auto& product : rates.products) products.push_back(to_json(product, ceiling));
    json[kDtypes][dtype] = {{kSquareFlops, rates.square_flops},
                            {"ceiling_flops_per_second", ceiling},
                            {"products", products},
                            {kMlpWidth, to_json(rates.mlp_width)},
                            {kHiddenSize, to_json(rates.hidden_size)},
                            {"kv_groups", to_json(rates.kv_groups)},
                            {"head_dim", to_json(rates.head_dim)}};
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

Sizing read_sizing(const base::Path& path) {
  const auto refused = [&](const std::string& what) {
    return base::DataError(base::join(
        path.string(), ": ", what, "; measure it again: retort bench gemm MODEL --out ", path.string(), "."));
  };
  std::error_code ignored;
  base::require<base::UsageError>(std::filesystem::exists(path, ignored), path.string(),
                                  ": there is no such file; measure it: retort bench gemm MODEL --out ",
                                  path.string(), ".");
  try {
    return sizing_of(base::read_own_json(path));
  } catch (const base::JsonFault& fault) {
    throw refused(base::join("byte ", fault.byte, ": ", fault.reason));
  } catch (const Json::exception& error) {
    throw refused(base::join("not what retort bench gemm writes (", error.what(), ")"));
  } catch (const Fault& fault) {
    throw refused(fault.what);
  }
}

}  // namespace retort::bench
