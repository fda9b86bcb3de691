#pragma once
// What was measured, as JSON: docs/formats/rates.md.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "retort/architecture/config.h"
#include "retort/base/json.h"
#include "retort/bench/kernels.h"
#include "retort/bench/machine.h"
#include "retort/bench/memory_rate.h"
#include "retort/bench/products.h"

namespace retort::bench {

inline constexpr std::int64_t kRatesFormat = 2;

/// The conditions of a measurement.
struct Conditions {
  Machine machine;
  std::string model;  ///< as it was named; empty: a shape that stands for models of some hundred million
  architecture::Config config;
  std::int64_t tokens = 0;  ///< that go through a product together
  MemoryRate memory;
};

/// Products in one compute type.
struct GemmRates {
  double square_flops = 0;  ///< of a product of 1024 x 1024 x 1024, operations per second
  std::vector<ProductRate> products;

  /// The fastest product of all.
  double ceiling_flops() const;
};

struct KernelRates {
  double square_flops = 0;
  std::vector<KernelRate> kernels;
};

/// By the name of the compute type, "fp32" or "bf16".
base::Json gemm_json(const Conditions& conditions, const std::map<std::string, GemmRates>& by_dtype);
base::Json kernels_json(const Conditions& conditions, const std::map<std::string, KernelRates>& by_dtype);

}  // namespace retort::bench
